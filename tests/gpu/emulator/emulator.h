/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device language on the CPU, as far as the kernels in worker/backends/cuda use it, so that g++ compiles them and a test can
 * run them where there is no GPU. What it is for is finding wrong kernels, not speed:
 *
 *   - Blocks run one after another, in an order that a seed shuffles. The threads of a block are fibers on one CPU thread; after every
 *     barrier the seed says who goes on first, so a missing barrier gives other bits with another seed. Seed 0 keeps both in order.
 *   - A warp is 32 threads. Shuffles, votes and matrix products are collective: all 32 lanes must come to the same one, else the
 *     emulator stops with the place. A block in which threads wait for different things, or leave before a barrier, stops likewise.
 *   - Dynamic shared memory is a heap block of exactly the bytes asked for, filled with NaN before each block: AddressSanitizer sees
 *     who leaves it, and what was never written shows in the result.
 *   - Asynchronous copies happen when they are waited for, not before.
 *   - mma and ldmatrix take and give the fragments of PTX (ISA, "Matrix fragments for mma.m16n8k8, m16n8k16"). A product is summed in
 *     double and rounded once; hardware rounds more often.
 *
 * One launch at a time. With runtime.c in the program launches wait in their streams as on a device; else they happen at once. */
#ifndef HG_TESTS_GPU_EMULATOR_H
#define HG_TESTS_GPU_EMULATOR_H

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

/* ---- Words of the language ---- */

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

static inline float2 make_float2(float x, float y)
{
    return float2{ x, y };
}

static inline float4 make_float4(float x, float y, float z, float w)
{
    return float4{ x, y, z, w };
}

static inline uint2 make_uint2(uint32_t x, uint32_t y)
{
    return uint2{ x, y };
}

static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return uint4{ x, y, z, w };
}

typedef int cudaError_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1 };

/* ---- Fibers ---- */

#define EMU_STACK_BYTES (256 * 1024)
#define EMU_LANES 32

struct emu_fiber {
    void *sp;    /* where it stopped */
    char *stack; /* lowest byte */
    void *fake;  /* of AddressSanitizer */
};

#if defined(__x86_64__)
/* Keep what a called function must keep, change stacks. */
__asm__(".text\n"
        ".type emu_switch_stack, @function\n"
        "emu_switch_stack:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size emu_switch_stack, .-emu_switch_stack\n");
#define EMU_FRAME_WORDS \
    8 /* six registers, the address to return to, and one to keep the alignment */
#define EMU_FRAME_PC 6
#elif defined(__aarch64__)
__asm__(".text\n"
        ".type emu_switch_stack, %function\n"
        "emu_switch_stack:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n  ret\n"
        ".size emu_switch_stack, .-emu_switch_stack\n");
#define EMU_FRAME_WORDS 20
#define EMU_FRAME_PC 11
#else
#error "the emulator's fibers know x86-64 and aarch64"
#endif
extern "C" void emu_switch_stack(void **from, void *to) __asm__("emu_switch_stack");

/* ---- The machine ---- */

enum emu_wait { EMU_READY, EMU_BLOCK, EMU_WARP, EMU_DONE };

/* A copy that has not happened yet; to == NULL closes a group. */
struct emu_copy {
    void *to;
    const void *from;
    int bytes, valid; /* the rest is zeros */
};

struct emu_thread {
    emu_fiber fiber;
    enum emu_wait wait;
    unsigned index;
    std::vector<emu_copy> copies;
};

struct emu_warp {
    unsigned arrived;
    unsigned turn; /* which half of slots the collective in progress uses */
    const char *what;
    alignas(16) unsigned char slots[2][EMU_LANES][64];
};

struct emu_machine {
    uint64_t seed, random;
    long blocks, switches; /* for the curious */
    dim3 grid, block, block_at;
    unsigned threads, done, at_barrier;
    std::vector<emu_thread *> fibers; /* made once, used by all launches */
    std::vector<emu_warp> warps;
    std::vector<unsigned> ready;
    unsigned now;
    emu_fiber scheduler;
    unsigned char *shared;
    size_t shared_bytes;
    const char *kernel;
    void (*body)(void *context);
    void *context;
};

inline emu_machine &emu = *new emu_machine(); /* for as long as the program runs */

/* For tests in C: the order of blocks and threads from now on. */
extern "C" __attribute__((weak)) void emu_seed(uint64_t seed)
{
    emu.seed = seed;
}

/* Launches over flat buffers of 8 elements and more: element by element, and 16 bytes at a time. */
inline std::atomic<long> emu_flat_launches[2];
extern "C" __attribute__((weak)) long emu_flat(int wide)
{
    return emu_flat_launches[wide];
}

[[noreturn]] static inline void emu_die(const char *why)
{
    fprintf(stderr, "emulator: %s: block (%u,%u,%u) thread %u: %s\n", emu.kernel, emu.block_at.x,
            emu.block_at.y, emu.block_at.z, emu.now, why);
    abort();
}

/* xorshift64* */
static inline unsigned emu_random(unsigned below)
{
    emu.random ^= emu.random >> 12;
    emu.random ^= emu.random << 25;
    emu.random ^= emu.random >> 27;
    return (unsigned)((emu.random * 0x2545f4914f6cdd1dULL >> 33) % below);
}

#ifdef __SANITIZE_ADDRESS__
/* The scheduler's stack, known when a fiber has started: lowest byte and size. */
inline const void *emu_scheduler_bottom;
inline size_t emu_scheduler_size;
#endif

static inline void emu_switch(emu_fiber *from, emu_fiber *to)
{
#ifdef __SANITIZE_ADDRESS__
    const void *bottom = to->stack ? to->stack : emu_scheduler_bottom;
    size_t size = to->stack ? EMU_STACK_BYTES : emu_scheduler_size;

    __sanitizer_start_switch_fiber(&from->fake, bottom, size);
    emu_switch_stack(&from->sp, to->sp);
    __sanitizer_finish_switch_fiber(from->fake, &bottom, &size);
#else
    emu_switch_stack(&from->sp, to->sp);
#endif
}

static inline void emu_yield(enum emu_wait wait)
{
    emu_thread *t = emu.fibers[emu.now];

    t->wait = wait;
    emu.switches++;
    emu_switch(&t->fiber, &emu.scheduler);
}

static inline void emu_make_ready(unsigned thread)
{
    emu.fibers[thread]->wait = EMU_READY;
    emu.ready.push_back(thread);
}

/* A fiber runs one thread of a block after another, for ever. */
[[noreturn]] static void emu_fiber_main()
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(NULL, &emu_scheduler_bottom, &emu_scheduler_size);
#endif
    for (;;) {
        emu.body(emu.context);
        if (!emu.fibers[emu.now]->copies.empty())
            emu_die("a thread ends with asynchronous copies that nobody waits for");
        emu.done++;
        emu_yield(EMU_DONE);
    }
}

static inline emu_thread *emu_fiber_make(unsigned index)
{
    emu_thread *t = new emu_thread();
    void **frame;

    t->index = index;
    t->fiber.stack = static_cast<char *>(aligned_alloc(4096, EMU_STACK_BYTES));
    if (!t->fiber.stack)
        emu_die("no memory for a stack");
    frame = reinterpret_cast<void **>(t->fiber.stack + EMU_STACK_BYTES) - 2 * EMU_FRAME_WORDS;
    memset(frame, 0, 2 * EMU_FRAME_WORDS * sizeof *frame);
    frame[EMU_FRAME_PC] = reinterpret_cast<void *>(emu_fiber_main);
    t->fiber.sp = frame;
    return t;
}

/* ---- Barriers ---- */

static inline void __syncthreads()
{
    if (++emu.at_barrier < emu.threads) {
        emu_yield(EMU_BLOCK);
        return;
    }
    emu.at_barrier = 0;
    for (unsigned i = 0; i < emu.threads; i++)
        if (i != emu.now)
            emu_make_ready(i);
    emu_make_ready(emu.now);
    emu_yield(EMU_READY);
}

static inline unsigned emu_lane()
{
    return emu.now % EMU_LANES;
}

typedef unsigned char emu_slot[64];

/* All lanes come here; what each brought lies in the slots that are returned. The last one to come does `together` before anybody
 * goes on. */
static inline emu_slot *emu_meet(const char *what, const void *mine, size_t bytes,
                                 void (*together)(emu_slot *) = NULL)
{
    emu_warp *w = &emu.warps[emu.now / EMU_LANES];
    unsigned turn = w->turn, base = emu.now / EMU_LANES * EMU_LANES;

    if (w->arrived && w->what != what && strcmp(w->what, what) != 0)
        emu_die("the lanes of a warp have come to different collectives");
    w->what = what;
    if (bytes)
        memcpy(w->slots[turn][emu_lane()], mine, bytes);
    if (++w->arrived < EMU_LANES) {
        emu_yield(EMU_WARP);
    } else {
        w->arrived = 0;
        w->turn = 1 - turn;
        if (together)
            together(w->slots[turn]);
        for (unsigned lane = 0; lane < EMU_LANES; lane++)
            emu_make_ready(base + lane);
        emu_yield(EMU_READY);
    }
    return emu.warps[emu.now / EMU_LANES].slots[turn];
}

static inline void emu_whole(unsigned mask)
{
    if (mask != 0xffffffffu)
        emu_die("only whole warps are emulated");
}

static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    emu_whole(mask);
    emu_meet("__syncwarp", NULL, 0);
}

template <typename T> static inline T emu_from_lane(const emu_slot *slots, unsigned lane)
{
    T value;

    memcpy(&value, slots[lane], sizeof value);
    return value;
}

template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int lanes)
{
    emu_whole(mask);
    return emu_from_lane<T>(emu_meet("__shfl_xor_sync", &value, sizeof value),
                            emu_lane() ^ (unsigned)lanes);
}

template <typename T> static inline T __shfl_sync(unsigned mask, T value, int lane)
{
    emu_whole(mask);
    return emu_from_lane<T>(emu_meet("__shfl_sync", &value, sizeof value),
                            (unsigned)lane % EMU_LANES);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    emu_slot *slots;
    unsigned votes = 0;

    emu_whole(mask);
    slots = emu_meet("__ballot_sync", &predicate, sizeof predicate);
    for (unsigned lane = 0; lane < EMU_LANES; lane++)
        votes |= (unsigned)(emu_from_lane<int>(slots, lane) != 0) << lane;
    return votes;
}

/* ---- Places ---- */

struct emu_index {
    unsigned x, y, z;
};

static inline emu_index emu_thread_index()
{
    unsigned x = emu.block.x, y = emu.block.y;

    return emu_index{ emu.now % x, emu.now / x % y, emu.now / x / y };
}

#define threadIdx (emu_thread_index())
#define blockIdx (emu.block_at)
#define blockDim (emu.block)
#define gridDim (emu.grid)

/* ---- Launching ---- */

static inline void emu_run_block()
{
    emu.ready.clear();
    emu.done = emu.at_barrier = 0;
    for (unsigned i = 0; i < emu.threads; i++)
        emu_make_ready(i);
    for (emu_warp &w : emu.warps)
        w.arrived = 0;
    if (emu.shared_bytes)
        memset(emu.shared, 0xff, emu.shared_bytes);
    while (!emu.ready.empty()) {
        size_t pick = emu.seed ? emu_random((unsigned)emu.ready.size()) : 0;

        emu.now = emu.ready[pick];
        if (emu.seed) {
            emu.ready[pick] = emu.ready.back();
            emu.ready.pop_back();
        } else {
            emu.ready.erase(emu.ready.begin());
        }
        emu_switch(&emu.scheduler, &emu.fibers[emu.now]->fiber);
    }
    if (emu.done < emu.threads)
        emu_die("threads wait for others that wait elsewhere or have ended");
    emu.blocks++;
}

/* Run body(context) for every thread of every block. */
static inline void emu_run(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes,
                           void (*body)(void *), void *context)
{
    std::vector<uint64_t> order;

    emu.kernel = kernel;
    emu.grid = grid;
    emu.block = block;
    emu.threads = block.x * block.y * block.z;
    emu.random = emu.seed * 0x9e3779b97f4a7c15ULL + 1;
    while (emu.fibers.size() < emu.threads)
        emu.fibers.push_back(emu_fiber_make((unsigned)emu.fibers.size()));
    emu.warps.resize(emu.threads / EMU_LANES);
    emu.shared_bytes = shared_bytes;
    emu.shared =
        shared_bytes
            ? static_cast<unsigned char *>(aligned_alloc(16, (shared_bytes + 15) / 16 * 16))
            : NULL;
    emu.body = body;
    emu.context = context;
    for (uint64_t i = 0; i < (uint64_t)grid.x * grid.y * grid.z; i++)
        order.push_back(i);
    for (uint64_t i = order.size(); emu.seed && i > 1; i--)
        std::swap(order[i - 1], order[emu_random((unsigned)i)]);
    for (uint64_t i : order) {
        emu.block_at = dim3((unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y),
                            (unsigned)(i / grid.x / grid.y));
        emu_run_block();
    }
    free(emu.shared);
    emu.shared = NULL;
}

/* One at a time, whichever thread asks. */
inline std::mutex &emu_turn = *new std::mutex();

template <typename F> struct emu_job {
    dim3 grid, block;
    size_t shared_bytes;
    F body;

    static void call(void *body)
    {
        (*static_cast<F *>(body))();
    }
    static int run(void *job)
    {
        std::lock_guard<std::mutex> turn(emu_turn);
        emu_job *j = static_cast<emu_job *>(job);

        emu_run("kernel", j->grid, j->block, j->shared_bytes, call, &j->body);
        return cudaSuccess;
    }
    static void end(void *job)
    {
        delete static_cast<emu_job *>(job);
    }
};

/* Of runtime.c, where the program has it: later, in the stream's order, or as a part of a graph. */
extern "C" __attribute__((weak)) int emu_stream_launch(void *stream, int (*run)(void *), void *job,
                                                       void (*end)(void *));

/* Shared memory that a block may have on each architecture which the kernels are compiled for. */
#ifdef WK_EMULATE_SM75
#define EMU_SHARED_BYTES (64 * 1024)
#else
#define EMU_SHARED_BYTES (99 * 1024)
#endif

template <typename F>
static inline int emu_launch(void *stream, dim3 grid, dim3 block, size_t shared_bytes, F body)
{
    unsigned threads = block.x * block.y * block.z;
    auto job = emu_job<F>{ grid, block, shared_bytes, body };

    if (threads % EMU_LANES || threads > 1024 || threads == 0 || grid.x > 0x7fffffff ||
        grid.y > 65535 || grid.z > 65535 || shared_bytes > EMU_SHARED_BYTES)
        return cudaErrorInvalidValue;
    if (emu_stream_launch && stream)
        return emu_stream_launch(stream, job.run, new emu_job<F>(job), job.end);
    return job.run(&job);
}

/* ---- Numbers ---- */

struct __nv_bfloat16 {
    uint16_t bits;
};
struct __half {
    uint16_t bits;
};

static inline uint32_t emu_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float emu_float(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float __bfloat162float(__nv_bfloat16 x)
{
    return emu_float((uint32_t)x.bits << 16);
}

/* To nearest, ties to even. */
static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    uint32_t bits = emu_bits(x);

    if (x != x)
        return __nv_bfloat16{ 0x7fff };
    return __nv_bfloat16{ (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16) };
}

static inline float __half2float(__half x)
{
    uint32_t sign = (uint32_t)(x.bits & 0x8000) << 16, exponent = x.bits >> 10 & 31,
             part = x.bits & 1023;

    if (exponent == 31)
        return emu_float(sign | 0x7f800000u | part << 13);
    if (exponent == 0)
        return (sign ? -1.0f : 1.0f) * (float)part * 0x1p-24f;
    return emu_float(sign | (exponent + 112) << 23 | part << 13);
}

static inline __half __float2half_rn(float x)
{
    uint32_t bits = emu_bits(x);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    float size = fabsf(x);

    if (x != x)
        return __half{ 0x7fff };
    if (size >= 65520.0f)
        return __half{ (uint16_t)(sign | 0x7c00) };
    if (size < 0x1p-14f) /* subnormal: adding 0.5 rounds to a multiple of 2^-24 */
        return __half{ (uint16_t)(sign | (emu_bits(size + 0.5f) - emu_bits(0.5f))) };
    bits &= 0x7fffffff;
    bits += 0xfff + (bits >> 13 & 1);
    return __half{ (uint16_t)(sign | ((bits >> 13) - (112 << 10))) };
}

static inline float __uint_as_float(uint32_t bits)
{
    return emu_float(bits);
}

static inline uint32_t __float_as_uint(float x)
{
    return emu_bits(x);
}

static inline int __popc(uint32_t x)
{
    return __builtin_popcount(x);
}

template <typename T> static inline T __ldg(const T *p)
{
    return *p;
}

/* ---- Asynchronous copies ---- */

static inline void emu_copy_async(void *to, const void *from, int bytes, int valid)
{
    if ((uintptr_t)to % (unsigned)bytes || (valid && (uintptr_t)from % (unsigned)bytes))
        emu_die("an asynchronous copy is not aligned to its size");
    emu.fibers[emu.now]->copies.push_back(emu_copy{ to, from, bytes, valid });
}

static inline void emu_copy_commit()
{
    emu.fibers[emu.now]->copies.push_back(emu_copy{ NULL, NULL, 0, 0 });
}

/* Until at most so many groups are on their way. */
static inline void emu_copy_wait(int groups)
{
    std::vector<emu_copy> &copies = emu.fibers[emu.now]->copies;
    size_t closed = 0, n = 0;

    for (const emu_copy &c : copies)
        closed += !c.to;
    while (closed > (size_t)groups) {
        const emu_copy &c = copies[n++];

        closed -= !c.to;
        if (c.to && c.valid)
            memcpy(c.to, c.from, (size_t)c.valid);
        if (c.to && c.valid < c.bytes)
            memset((char *)c.to + c.valid, 0, (size_t)(c.bytes - c.valid));
    }
    copies.erase(copies.begin(), copies.begin() + (long)n);
}

/* ---- Matrix fragments. Lane 4 g + t; a register holds two elements, the first in its low half. ---- */

static inline float emu_half(uint32_t pair, int high, __nv_bfloat16)
{
    return __bfloat162float(__nv_bfloat16{ (uint16_t)(pair >> 16 * high) });
}

static inline float emu_half(uint32_t pair, int high, __half)
{
    return __half2float(__half{ (uint16_t)(pair >> 16 * high) });
}

struct emu_operands {
    uint32_t a[4], b[2];
};

/* d (16, 8) += a (16, k) b (k, 8) for k = 8 or 16: a0 holds (row g, k 2t), a1 (g + 8, 2t), a2 (g, 2t + 8), a3 (g + 8, 2t + 8), b0
 * (k 2t, col g), b1 (2t + 8, g); d0 and d1 are (row g, col 2t and 2t + 1), d2 and d3 the same of row g + 8. */
template <typename H>
static inline void emu_mma(float d[4], const uint32_t *a, const uint32_t *b, int k)
{
    emu_operands mine = {}, other;
    emu_slot *slots;
    unsigned g = emu_lane() / 4, t = emu_lane() % 4;

    memcpy(mine.a, a, (size_t)k / 4 * sizeof *a);
    memcpy(mine.b, b, (size_t)k / 8 * sizeof *b);
    slots = emu_meet("mma", &mine, sizeof mine);
    for (unsigned i = 0; i < 4; i++) {
        unsigned row = g, col = 2 * t + i % 2;
        double sum = (double)d[i];

        for (int at = 0; at < k; at++) {
            unsigned holder = (unsigned)at % 8 / 2, half = (unsigned)at / 8;
            float x, y;

            other = emu_from_lane<emu_operands>(slots, 4 * row + holder);
            x = emu_half(other.a[2 * half + i / 2], at % 2, H());
            other = emu_from_lane<emu_operands>(slots, 4 * col + holder);
            y = emu_half(other.b[half], at % 2, H());
            sum += (double)x * (double)y;
        }
        d[i] = (float)sum;
    }
}

/* tf32: d (16, 8) += a (16, 8) b (8, 8), one element a register: a0 (row g, k t), a1 (g + 8, t), a2 (g, t + 4), a3 (g + 8, t + 4),
 * b0 (k t, col g), b1 (t + 4, g). The lowest 13 bits do not count. */
static inline void emu_mma_tf32(float d[4], const uint32_t *a, const uint32_t *b)
{
    emu_operands mine, other;
    emu_slot *slots;
    unsigned g = emu_lane() / 4, t = emu_lane() % 4;

    memcpy(mine.a, a, sizeof mine.a);
    memcpy(mine.b, b, sizeof mine.b);
    slots = emu_meet("mma tf32", &mine, sizeof mine);
    for (unsigned i = 0; i < 4; i++) {
        double sum = (double)d[i];

        for (unsigned at = 0; at < 8; at++) {
            float x, y;

            other = emu_from_lane<emu_operands>(slots, 4 * g + at % 4);
            x = emu_float(other.a[2 * (at / 4) + i / 2] & 0xffffe000u);
            other = emu_from_lane<emu_operands>(slots, 4 * (2 * t + i % 2) + at % 4);
            y = emu_float(other.b[at / 4] & 0xffffe000u);
            sum += (double)x * (double)y;
        }
        d[i] = (float)sum;
    }
}

/* Each lane brought an address; put the 16 bytes there in its place. */
static inline void emu_fetch_rows(emu_slot *slots)
{
    for (unsigned lane = 0; lane < EMU_LANES; lane++)
        memcpy(slots[lane], emu_from_lane<const void *>(slots, lane), 16);
}

/* Four 8 x 8 matrices of halves: lane 8 m + r has the address of row r of matrix m. Register m of lane 4 g + t is row g, columns 2t
 * and 2t + 1; transposed, rows 2t and 2t + 1 of column g. */
static inline void emu_ldmatrix(uint32_t r[4], const void *row, bool transposed)
{
    emu_slot *slots;
    unsigned g = emu_lane() / 4, t = emu_lane() % 4;

    if ((uintptr_t)row % 16)
        emu_die("ldmatrix: an address is not a multiple of 16");
    slots = emu_meet("ldmatrix", &row, sizeof row, emu_fetch_rows);
    for (unsigned m = 0; m < 4; m++) {
        unsigned row0 = transposed ? 2 * t : g, row1 = transposed ? 2 * t + 1 : g;
        unsigned col0 = transposed ? g : 2 * t, col1 = transposed ? g : 2 * t + 1;
        uint16_t low, high;

        memcpy(&low, slots[8 * m + row0] + 2 * col0, 2);
        memcpy(&high, slots[8 * m + row1] + 2 * col1, 2);
        r[m] = low | (uint32_t)high << 16;
    }
}

#endif
