/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

void *wk_library_open(const char *const *names, const char *what, struct hg_err *err)
{
    for (const char *const *name = names; *name; name++) {
        void *library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        char path[512];

        snprintf(path, sizeof path, "%s/%s", WK_CUDA_LIBRARIES, *name);
        if (!library)
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    hg_err_set(err, HG_E_ENV, "%s is not available on this machine: cannot open %s", what,
               names[0]);
    hg_err_hint(err,
                "add the folder that holds it to LD_LIBRARY_PATH (a CUDA toolkit's lib64, or the "
                "nvidia/*/lib folders of a Python environment)");
    return NULL;
}

void *wk_library_find(void *library, const char *function, struct hg_err *err)
{
    void *address = dlsym(library, function);

    if (!address)
        hg_err_set(err, HG_E_ENV, "an NVIDIA library is too old: it has no function %s", function);
    return address;
}

/* ISO C has no cast from an object's address to a function's. */
static bool take(void *library, const char *name, void *function, struct hg_err *err)
{
    void *address = wk_library_find(library, name, err);

    memcpy(function, &address, sizeof address);
    return address;
}

#define STRING(x) #x
#define SONAME(library, major) library ".so." STRING(major)

static const struct wk_cublaslt *cublaslt_get(struct hg_err *err)
{
    /* the functions that are used are the same in 12 */
    static const char *const names[] = { SONAME("libcublasLt", CUBLAS_VER_MAJOR),
                                         "libcublasLt.so.12", NULL };
    static struct wk_cublaslt all;
    void *library;

    if (all.cublasLtMatmul)
        return &all;
    library = wk_library_open(names, "cuBLASLt", err);
    if (!library)
        return NULL;
#define TAKE(function) take(library, #function, &all.function, err) &&
    if (WK_CUBLASLT_FUNCTIONS(TAKE) true)
        return &all;
#undef TAKE
    all = (struct wk_cublaslt){ 0 };
    return NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* dp opens devices in threads */

const struct wk_cublaslt *wk_cublaslt_get(struct hg_err *err)
{
    const struct wk_cublaslt *lib;

    pthread_mutex_lock(&lock);
    lib = cublaslt_get(err);
    pthread_mutex_unlock(&lock);
    return lib;
}

/* ---- NVML ---- */

/* NVML's header does not come with every toolkit: these few declarations are its stable ABI. */
typedef struct nvmlDevice_st *nvml_device;
struct nvml {
    int (*init)(void);
    int (*driver)(char *, unsigned);
    int (*by_pci)(const char *, nvml_device *);
    int (*ecc)(nvml_device, int, int, unsigned long long *);
    int (*mig)(nvml_device, unsigned *, unsigned *);
    int (*power)(nvml_device, unsigned *);
    int (*power_limit)(nvml_device, unsigned *);
    int (*clock)(nvml_device, int, unsigned *);
    int (*clock_most)(nvml_device, int, unsigned *);
    int (*processes)(nvml_device, unsigned *, void *);
};
enum { NVML_CLOCK_SM = 1, NVML_UNCORRECTED = 1, NVML_SINCE_LOADED = 0, NVML_TOO_SMALL = 7 };

static const struct nvml *nvml_get_locked(struct hg_err *err)
{
    static const char *const names[] = { "libnvidia-ml.so.1", NULL };
    static struct nvml n;
    static bool ready;
    const struct {
        const char *name;
        void *function;
    } all[] = {
        { "nvmlInit_v2", &n.init },
        { "nvmlSystemGetDriverVersion", &n.driver },
        { "nvmlDeviceGetHandleByPciBusId_v2", &n.by_pci },
        { "nvmlDeviceGetTotalEccErrors", &n.ecc },
        { "nvmlDeviceGetMigMode", &n.mig },
        { "nvmlDeviceGetPowerUsage", &n.power },
        { "nvmlDeviceGetEnforcedPowerLimit", &n.power_limit },
        { "nvmlDeviceGetClockInfo", &n.clock },
        { "nvmlDeviceGetMaxClockInfo", &n.clock_most },
        { "nvmlDeviceGetComputeRunningProcesses_v3", &n.processes },
    };
    void *library;

    if (ready)
        return &n;
    library = wk_library_open(names, "the driver's libnvidia-ml", err);
    for (size_t i = 0; library && i < sizeof all / sizeof *all; i++)
        if (!take(library, all[i].name, all[i].function, err))
            return NULL;
    if (!library)
        return NULL;
    if (n.init() != 0) {
        hg_err_set(err, HG_E_ENV, "NVML cannot start: no NVIDIA driver is loaded");
        return NULL;
    }
    ready = true;
    return &n;
}

static const struct nvml *nvml_get(struct hg_err *err)
{
    const struct nvml *n;

    pthread_mutex_lock(&lock);
    n = nvml_get_locked(err);
    pthread_mutex_unlock(&lock);
    return n;
}

static double watts(int (*read)(nvml_device, unsigned *), nvml_device device)
{
    unsigned milliwatts;

    return read(device, &milliwatts) == 0 ? milliwatts / 1000.0 : -1;
}

static int megahertz(int (*read)(nvml_device, int, unsigned *), nvml_device device)
{
    unsigned mhz;

    return read(device, NVML_CLOCK_SM, &mhz) == 0 ? (int)mhz : -1;
}

int wk_nvml_read(const char *pci, struct wk_nvml_info *info, struct hg_err *err)
{
    const struct nvml *n = nvml_get(err);
    unsigned mode, pending, count = 0;
    unsigned long long errors;
    nvml_device device;
    int code;

    *info = (struct wk_nvml_info){ .processes = -1, .ecc_errors = -1, .mig = -1 };
    if (!n)
        return -1;
    n->driver(info->driver, sizeof info->driver);
    code = n->by_pci(pci, &device);
    if (code != 0)
        return hg_err_set(err, HG_E_ENV, "NVML does not know device %s (error %d)", pci, code);
    if (n->ecc(device, NVML_UNCORRECTED, NVML_SINCE_LOADED, &errors) == 0)
        info->ecc_errors = (int)errors;
    if (n->mig(device, &mode, &pending) == 0)
        info->mig = mode != 0;
    code = n->processes(device, &count, NULL); /* with no room: how many there are */
    if (code == 0 || code == NVML_TOO_SMALL)
        info->processes = (int)count;
    info->power_w = watts(n->power, device);
    info->power_limit_w = watts(n->power_limit, device);
    info->clock_mhz = megahertz(n->clock, device);
    info->clock_most_mhz = megahertz(n->clock_most, device);
    return 0;
}
