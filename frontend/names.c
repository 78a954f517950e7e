// names.c: statuses, dtypes and the version in words.
#include "frontend/context.h"

const char *
fc_version(void)
{
    return FUSEC_VERSION;
}

const char *
fc_status_name(fc_status s)
{
    switch ((int)s) {
#define STATUS(name, value, doc)                                                                   \
    case value:                                                                                    \
        return "FC_" #name;
#include "ir/status.def"
#undef STATUS
    }
    return "unknown status";
}

const char *
fc_status_words(fc_status s)
{
    switch ((int)s) {
#define STATUS(name, value, doc)                                                                   \
    case value:                                                                                    \
        return doc;
#include "ir/status.def"
#undef STATUS
    }
    return "no such status";
}

const char *
fc_dtype_name(fc_dtype d)
{
    return dtype_name((unsigned)d < DT_COUNT ? (uint8_t)d : DT_NONE);
}

size_t
fc_dtype_size(fc_dtype d)
{
    return (unsigned)d < DT_COUNT ? dtype_size((uint8_t)d) : 0;
}
