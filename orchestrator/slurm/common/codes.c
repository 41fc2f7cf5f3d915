/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/common/codes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SYSTEM_MAX 134 /* one more than the last error number of Linux */

/* Slurm's names for them: codes.def. */
enum {
    UNEXPECTED = 1000, /* 23.11 also reports a frozen controller with it */
    AUTHENTICATION = 1007,
    INSANE_LENGTH = 1008,
    NO_CONTROLLER = 1800,
    POLICY = 2050,
    ZERO_BYTES = 5000,
    INCOMPLETE = 5003,
    NO_ANSWER = 5004,
    ZERO_BYTES_SENT = 5005 /* also used for receiving */
};

struct entry {
    int number;
    enum hg_err_code code;
    const char *words, *members; /* NULL: none */
};

static const struct entry table[] = {
#define E(number, class, name) { number, HG_E_##class, NULL, NULL },
#define W(number, class, name, words, members) { number, HG_E_##class, words, members },
#include "slurm/common/codes.def"
#undef E
#undef W
};

#define MAX_JOB_COUNT 2007 /* older headers have another name for it */

static const struct entry *find(int number)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].number == number)
            return &table[i];
    return NULL;
}

const char *hg_agent_about(int number)
{
    const struct entry *entry = find(number);

    return entry ? entry->members : NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

int hg_agent_number_of(const char *text)
{
    if (strstr(text, "Unspecified error"))
        return HG_AGENT_SLURM_ERROR;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].words && strstr(text, table[i].words))
            return table[i].number;
    for (int number = 1; number < SYSTEM_MAX; number++) {
        const char *words = strerror(number);

        if (ends_with(text, words) && strncmp(words, "Unknown", 7) != 0)
            return number;
    }
    return 0;
}

bool hg_agent_knows(int number)
{
    return find(number) != NULL;
}

/* Errors of connecting are certain; any other of the system's may have come after the message was
 * sent. */
static enum hg_err_code classify_errno(int number)
{
    switch (number) {
    case EAGAIN: /* MaxJobCount is reached (before 26.05) */
        return HG_E_AGAIN;
    case ENOENT:
    case EACCES:
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EMFILE:
    case ENFILE:
        return HG_E_ENV;
    default:
        return HG_E_AMBIGUOUS;
    }
}

/* Slurm gives the same numbers for "could not sign the request" and "could not read the answer". */
static bool never_signed(const char *site)
{
    return strstr(site, "Munge encode failed") && !strstr(site, "Munge decode failed");
}

static bool is_authentication(int number)
{
    return number == AUTHENTICATION || (number >= 6000 && number < 6100);
}

enum hg_err_code hg_agent_classify(int number, const char *site)
{
    const struct entry *entry = find(number);

    if (number == HG_AGENT_SLURM_ERROR)
        return HG_E_REFUSED;
    if (is_authentication(number) && never_signed(site))
        return HG_E_ENV;
    if (entry)
        return entry->code;
    if (number > 0 && number < 1000)
        return classify_errno(number);
    return number >= 2000 && number < 3000 ? HG_E_REFUSED : HG_E_AMBIGUOUS;
}

/* ---- Other versions ---- */

#define STRANGE_MAX 5 /* a controller that is killed and restarted may give one of them */

static bool understood;  /* an answer could be read, once */
static unsigned strange; /* consecutive answers that could not be read */

void hg_agent_understood(void)
{
    understood = true;
    strange = 0;
}

/* A controller closes the connection of a client whose protocol it does not know, and a message of another protocol
 * has a length that makes no sense. libslurm 23.11 calls either UNEXPECTED. */
static bool is_strange(int number)
{
    return number == INSANE_LENGTH || number == ZERO_BYTES || number == INCOMPLETE ||
           number == ZERO_BYTES_SENT || number == UNEXPECTED;
}

static bool is_unfit(const struct hg_agent_call *call, int number)
{
    if (number == HG_AGENT_PROTOCOL_VERSION)
        return true;
    if (!is_strange(number))
        return false;
    strange++;
    return !call->submitting && (!understood || strange >= STRANGE_MAX);
}

static void add_hint(struct hg_err *err, int number)
{
    if (is_authentication(number))
        hg_err_hint(err,
                    "is munged running? (`munge -n | unmunge`; where slurm.conf has AuthInfo, with "
                    "--socket)");
    else if (number == NO_CONTROLLER || number == UNEXPECTED || number == ECONNREFUSED)
        hg_err_hint(err, "is slurmctld running? (`scontrol ping`)");
    else if (number == POLICY)
        hg_err_hint(err,
                    "if no job of yours is in the queue, these will never be accepted: `sacctmgr "
                    "show assoc` and `sacctmgr show qos` list the limits");
    else if (number == HG_AGENT_SLURM_ERROR && err->code == HG_E_REFUSED)
        hg_err_hint(err, "change what the cells request as these words say, or ask the site");
    else if (number == HG_AGENT_PROTOCOL_VERSION)
        hg_err_hint(err, "build hpcgrid-slurm against this site's libslurm");
    else if (is_strange(number))
        hg_err_hint(err, "is slurmctld of another release? `hpcgrid doctor` names both; "
                         "HPCGRID_TRANSPORT=cli uses the site's own commands");
}

/* A plain text, where Slurm's own is unclear. */
static const char *explain(int number, const char *text)
{
    if (number == HG_AGENT_SLURM_ERROR)
        return "the site's submit plugin refused it";
    if (number == EAGAIN || number == MAX_JOB_COUNT)
        return "the job table is full (MaxJobCount)";
    if (number == POLICY)
        return "a limit of the account or QOS was reached: number of jobs, their size or their time";
    if (number == NO_ANSWER)
        return "slurmctld did not answer in time";
    if (number == ZERO_BYTES || number == ZERO_BYTES_SENT)
        return "slurmctld closed the connection without an answer";
    if (number == INSANE_LENGTH || number == INCOMPLETE)
        return "the answer of slurmctld cannot be read";
    if (number == UNEXPECTED)
        return "slurmctld did not answer, or its answer cannot be read";
    if (is_authentication(number))
        return "authentication failed: munge cannot be used";
    return text;
}

/* libslurm gives no number to an answer of a release that it does not know. A controller that understands a client
 * answers in its protocol: this one did not, so nothing was done. */
static bool other_release(const struct hg_agent_call *call, int number)
{
    return number == HG_AGENT_SLURM_ERROR &&
           strstr(hg_buf_str(&call->site), "Incompatible versions of client and server code");
}

int hg_agent_fail_number(struct hg_agent_call *call, int number, const char *text, const char *fmt,
                         ...)
{
    enum hg_err_code code;
    const char *why;
    char what[256];
    va_list ap;

    if (other_release(call, number)) {
        number = HG_AGENT_PROTOCOL_VERSION;
        text = "slurmctld is of a release that does not understand this libslurm";
    }
    code = hg_agent_classify(number, hg_buf_str(&call->site));
    why = explain(number, text);
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (code == HG_E_AMBIGUOUS && !call->submitting)
        code = HG_E_AGAIN;
    call->number = number;
    call->unfit = is_unfit(call, number);
    if (number == HG_AGENT_SLURM_ERROR)
        hg_err_set(&call->err, code, "%s: %s", what, why);
    else
        hg_err_set(&call->err, code, "%s: %s (%d)", what, why, number);
    add_hint(&call->err, number);
    return -1;
}
