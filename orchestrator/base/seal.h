/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_SEAL_H
#define HG_BASE_SEAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* JSON with a checksum in it: the last member of the object is "crc", the CRC-32C of all bytes before `,"crc"`, as eight hex
 * digits. Lines of a journal and result files end with it. */

/* Append the text of an object that is not empty and has no "crc", with its checksum and a newline. flags: as hg_json_dump. */
void hg_seal_dump(const json_t *object, unsigned flags, struct hg_buf *out);

/* Does the text, without its newline, end with its checksum? */
bool hg_seal_holds(const char *text, size_t len);

#endif
