/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/errors.h"

#include <string.h>

#include "backends/backend.h"

/* cudaError_t, whose numbers are fixed. */
enum {
    NO_MEMORY = 2,
    OLD_DRIVER = 35,
    UNAVAILABLE = 46,
    NO_DEVICE = 100,
    NO_KERNELS = 209,
    ECC = 214,
    NVLINK = 220,
    UNSUPPORTED_PTX = 222,
    CONTAINED = 226,
    ILLEGAL_ADDRESS = 700,
    TIMEOUT = 702,
    HARDWARE_STACK = 714,
    ILLEGAL_INSTRUCTION = 715,
    LAUNCH_FAILURE = 719,
    NOT_READY = 802,
    DRIVER_MISMATCH = 803,
    NO_COMPATIBILITY = 804,
    NO_MPS = 807,
    UNKNOWN = 999
};

/* The oldest driver for a CUDA runtime: its major version, as NVIDIA numbers drivers ("580"). */
static const char *driver_needed(int runtime)
{
    static const struct {
        int runtime;
        const char *driver;
    } table[] = { { 13000, "580" }, { 12000, "525" }, { 11000, "450" } };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (runtime >= table[i].runtime)
            return table[i].driver;
    return "newer";
}

static const char *what_of(const struct wk_cuda_trouble *t)
{
    return t->what ? t->what : "opening the device";
}

static int no_driver(const struct wk_cuda_trouble *t, struct hg_err *err)
{
    hg_err_set(err, HG_E_ENV, "no NVIDIA driver is loaded on this machine");
    return hg_err_hint(err,
                       "run it on a machine with a GPU (its driver must be %s or newer), or "
                       "use backend \"cpu\"",
                       driver_needed(t->runtime));
}

/* The oldest that builds hpcgrid-worker (CMakeLists.txt). A driver runs the kernels of any toolkit of its major version, but translates
 * for a later architecture only those of a toolkit that is not newer than itself. */
#define OLDEST_TOOLKIT 12020

static int old_driver(const struct wk_cuda_trouble *t, struct hg_err *err)
{
    int fits;

    if (t->driver == 0)
        return no_driver(t, err);
    hg_err_set(
        err, HG_E_ENV,
        "the NVIDIA driver is too old: it supports CUDA %d.%d, this program needs CUDA %d.%d",
        t->driver / 1000, t->driver % 1000 / 10, t->runtime / 1000, t->runtime % 1000 / 10);
    if (t->driver < 12000)
        return hg_err_hint(err, "driver %s or newer is needed%s", driver_needed(t->runtime),
                           t->runtime < 13000 ? "" : ", or 525 if CUDA 12.2 builds hpcgrid-worker");
    fits = t->driver > OLDEST_TOOLKIT ? t->driver : OLDEST_TOOLKIT;
    return hg_err_hint(err,
                       "driver %s or newer is needed; or build hpcgrid-worker with CUDA %d.%d, for "
                       "which this one is new enough",
                       driver_needed(t->runtime), fits / 1000, fits % 1000 / 10);
}

static int no_device(struct hg_err *err)
{
    hg_err_set(err, HG_E_ENV, "the NVIDIA driver shows no GPU to this process");
    return hg_err_hint(err, "does the job request one (\"gpus_per_node\", the site's gres)? "
                            "CUDA_VISIBLE_DEVICES and `nvidia-smi -L` show what is available");
}

/* An error that says only that the driver no longer reaches the device: "fallen off the bus", a reset by somebody else. */
static int lost(const struct wk_cuda_trouble *t, struct hg_err *err)
{
    hg_err_set(err, HG_E_ENV, "%s (%s) no longer responds, noticed by %s", t->device,
               t->pci ? t->pci : "?", what_of(t));
    return hg_err_hint(err, "the node's kernel log (`dmesg`) has the Xid (79: fallen off the bus); "
                            "drain the node and run the cell again on another one");
}

static int no_memory(const struct wk_cuda_trouble *t, struct hg_err *err)
{
    hg_err_set(err, HG_E_ENV, "no memory on %s for %s", t->device, what_of(t));
    return hg_err_hint(err, "another process may use it: `nvidia-smi` shows which; two ranks must "
                            "not share a GPU");
}

static int busy(struct hg_err *err, const char *device)
{
    hg_err_set(err, HG_E_ENV, "%s is busy, or in exclusive mode with another process on it",
               device);
    return hg_err_hint(
        err, "`nvidia-smi` shows which process uses it; two ranks must not share a GPU in "
             "exclusive mode");
}

static int broken(const struct wk_cuda_trouble *t, struct hg_err *err, const char *why)
{
    hg_err_set(err, HG_E_ENV, "%s (%s) has failed: %s", t->device, t->pci ? t->pci : "?", why);
    return hg_err_hint(err,
                       "the node's kernel log (`dmesg`) has the Xid; have the node drained, and "
                       "run the cell again elsewhere");
}

static int no_kernels(const struct wk_cuda_trouble *t, struct hg_err *err)
{
    hg_err_set(err, HG_E_ENV, "this program has no kernels for %s (compute capability %d.%d)",
               t->device, t->capability / 10, t->capability % 10);
    return hg_err_hint(err,
                       "it was built for %s; build it with preset release, or with "
                       "CMAKE_CUDA_ARCHITECTURES=%d",
                       t->architectures, t->capability);
}

static int bug(const struct wk_cuda_trouble *t, struct hg_err *err)
{
    hg_err_set(err, HG_E_BUG, "a kernel failed on %s, noticed by %s: %s", t->device, what_of(t),
               t->name);
    return hg_err_hint(err,
                       "CUDA_LAUNCH_BLOCKING=1 names the op; the node's kernel log may have an "
                       "Xid, then the device is broken");
}

static int explain_known(const struct wk_cuda_trouble *t, struct hg_err *err)
{
    switch (t->code) {
    case OLD_DRIVER:
        return old_driver(t, err);
    case NO_DEVICE:
        return t->driver == 0 ? no_driver(t, err) : no_device(err);
    case UNAVAILABLE:
        return t->what ? lost(t, err) : busy(err, t->device);
    case UNKNOWN:
        return t->what ? lost(t, err) : 0;
    case NO_KERNELS:
    case UNSUPPORTED_PTX: /* the toolkit was newer than the driver, which translates for later architectures */
        return no_kernels(t, err);
    case ECC:
        return broken(t, err, "an uncorrectable ECC error");
    case NVLINK:
        return broken(t, err, "an uncorrectable NVLink error");
    case CONTAINED:
    case HARDWARE_STACK:
        return broken(t, err, t->name);
    case NO_MEMORY:
        return no_memory(t, err);
    case NOT_READY:
        hg_err_set(err, HG_E_ENV, "the machine's GPUs are not ready");
        return hg_err_hint(err, "machines with NVSwitch need nvidia-fabricmanager to run");
    case DRIVER_MISMATCH:
        hg_err_set(err, HG_E_ENV, "the NVIDIA driver and its library differ in version");
        return hg_err_hint(err,
                           "the driver was updated without a reboot, or a container brings its "
                           "own libcuda");
    case NO_COMPATIBILITY:
        return old_driver(t, err);
    case NO_MPS:
        hg_err_set(err, HG_E_ENV, "the node's MPS server does not respond");
        return hg_err_hint(err,
                           "restart nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY");
    case ILLEGAL_ADDRESS:
    case ILLEGAL_INSTRUCTION:
    case LAUNCH_FAILURE:
    case TIMEOUT:
        return bug(t, err);
    default:
        return 0;
    }
}

int wk_cuda_explain(const struct wk_cuda_trouble *t, struct hg_err *err)
{
    struct wk_cuda_trouble known = *t;

    known.device = t->device ? t->device : "the GPU";
    if (explain_known(&known, err) == 0)
        hg_err_set(err, HG_E_ENV, "%s: CUDA error %d (%s) on %s", what_of(t), t->code, t->name,
                   known.device);
    return -1;
}

bool wk_cuda_can(int precision, int capability, const char *device, struct hg_err *err)
{
    const char *name = wk_precision_name((enum wk_precision)precision);
    int needed = precision == WK_TF32 || precision == WK_MIXED_BF16 ? 80 : 75;

    if (capability >= needed)
        return true;
    hg_err_set(err, HG_E_ENV,
               "%s (compute capability %d.%d) cannot compute in %s, which needs %d.%d", device,
               capability / 10, capability % 10, name, needed / 10, needed % 10);
    if (precision == WK_MIXED_BF16 && capability >= 75)
        hg_err_hint(err, "fp16 with a scaled loss works on it");
    else if (capability >= 75)
        hg_err_hint(err, "fp32 and fp16 work on it");
    else
        hg_err_hint(err, "hpcgrid-worker needs compute capability 7.5 (Turing) or newer");
    return false;
}
