/* SPDX-License-Identifier: Apache-2.0 */
/* wk_cuda_gather_tokens, which no op of the cpu backend has as a twin: batches of token sequences out of a resident data set. */
#include "../unit/test.h"

#include "backends/cuda/kernels.h"

void emu_seed(uint64_t seed);

enum { ROWS = 20, FILL = 4 };

/* Three features of 5, 1 and 3 tokens; the batch takes the last twice, once padded, and an empty place between. */
static const int32_t tokens[] = { 101, 7, 102, 8, 102, 5, 101, 9, 102 }, at[] = { 0, 5, 6, 9 };
static const int32_t second[] = { 3, 1, 2 };
static const int32_t sample[] = { 2, 0, 1, 2 }, first[] = { 0, 3, 8, 8, 16 },
                     real[] = { 3, 5, 0, 3 };

static void test_rows_are_tokens_then_padding_then_nobodys(void **state)
{
    static const int32_t ids_wanted[ROWS] = { 101, 9, 102, 101, 7, 102, 8, 102, 101, 9, 102 };
    static const int32_t types_wanted[ROWS] = { [2] = 1, [6] = 1, [7] = 1, [10] = 1 };
    int32_t ids[ROWS], types[ROWS], sequence[ROWS];
    const struct wk_cuda_packing p = {
        .sequences = 4, .rows = ROWS, .longest = 8, .first = first, .tokens = real, .sample = sample
    };

    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        memset(ids, 0xff, sizeof ids);
        memset(types, 0xff, sizeof types);
        memset(sequence, 0x55, sizeof sequence);
        emu_seed(seed);
        assert_int_equal(wk_cuda_gather_tokens(NULL, ids, types, sequence, &p, tokens, at, second),
                         0);
        for (int row = 0; row < ROWS; row++) {
            int wanted = row < 3 ? 0 : row < 8 ? 1 : row < ROWS - FILL ? 3 : -1;

            assert_int_equal(ids[row], ids_wanted[row]);
            assert_int_equal(types[row], types_wanted[row]);
            assert_int_equal(sequence[row], wanted);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_tokens_then_padding_then_nobodys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
