/* SPDX-License-Identifier: Apache-2.0 */
/* What the mock libraries and kernels ask of the mock runtime (runtime.c). */
#ifndef HG_TESTS_GPU_RUNTIME_H
#define HG_TESTS_GPU_RUNTIME_H

/* Put run(job) behind the stream's work, or into the graph that it captures, where it may run any number of times; then end(job), once.
 * Returns the device's error, 0 for none. */
int emu_stream_launch(void *stream, int (*run)(void *job), void *job, void (*end)(void *job));

/* Count a launch of NCCL's. */
void emu_collective(void);

/* Launches over flat buffers so far, 16 bytes at a time or (0) element by element. */
long emu_flat(int wide);

#endif
