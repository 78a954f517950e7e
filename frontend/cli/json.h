// json.h: writes JSON (RFC 8259): commas, quotes, escapes and lines are its business.
#ifndef FUSEC_FRONTEND_CLI_JSON_H
#define FUSEC_FRONTEND_CLI_JSON_H

#include "ir/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct json {
    struct str *out;
    bool comma;      // a value stands before
    uint32_t depth;  // of open brackets
    uint32_t arrays; // bit i: the bracket at depth i is '['
};
// key: NULL within an array.
void json_open(struct json *j, const char *key, char bracket); // '{' or '['
void json_close(struct json *j, char bracket);                 // '}' or ']'
void json_text(struct json *j, const char *key, const char *text); // NULL: null
void json_int(struct json *j, const char *key, int64_t value);
void json_number(struct json *j, const char *key, double value, int decimals);
void json_bool(struct json *j, const char *key, bool value);

#endif
