/* SPDX-License-Identifier: Apache-2.0 */
#include "results/metric.h"

#include <string.h>

bool hg_metric_has_suffix(const char *text, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);

    return len > n && memcmp(text + len - n, suffix, n) == 0;
}

/* "step_s.median" is named by the part before the dot. */
static size_t head_length(const char *metric)
{
    return strcspn(metric, ".");
}

/* Is `word` the whole of a name, or its last word ("final_loss")? */
static bool is_word_of(const char *name, size_t len, const char *word)
{
    size_t n = strlen(word);

    return len >= n && memcmp(name + len - n, word, n) == 0 &&
           (len == n || name[len - n - 1] == '_');
}

bool hg_metric_is_rate(const char *metric)
{
    return hg_metric_has_suffix(metric, head_length(metric), "_per_s");
}

bool hg_metric_is_time(const char *metric)
{
    return hg_metric_has_suffix(metric, head_length(metric), "_s") && !hg_metric_is_rate(metric);
}

int hg_metric_direction(const char *metric)
{
    static const char *const good[] = { "accuracy", "em",         "exact_match", "f1",
                                        "auc",      "bleu",       "rouge",       "mfu",
                                        "flops",    "throughput", "bandwidth",   "precision",
                                        "recall",   "util" };
    static const char *const bad[] = { "loss",  "perplexity", "ppl",    "error",   "wer",
                                       "bytes", "cost",       "energy", "latency", "j",
                                       "wh",    "seconds",    "misses" };
    size_t n = head_length(metric);
    const char *last = strrchr(metric, '.');

    if (hg_metric_is_rate(metric))
        return 1;
    if (hg_metric_is_time(metric))
        return -1;
    last = last ? last + 1 : metric;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (is_word_of(last, strlen(last), good[i]) || is_word_of(metric, n, good[i]))
            return 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (is_word_of(last, strlen(last), bad[i]) || is_word_of(metric, n, bad[i]))
            return -1;
    return strncmp(metric, "memory.", 7) == 0 ? -1 : 0;
}
