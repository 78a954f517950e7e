// reasons.c: reason codes as data, from reasons.def.
#include "passes/plan.h"

const char *const reason_name[REASON_COUNT] = {
#define REASON(name, doc) [REASON_##name] = #name,
#include "passes/reasons.def"
#undef REASON
};

const char *const reason_doc[REASON_COUNT] = {
#define REASON(name, doc) [REASON_##name] = doc,
#include "passes/reasons.def"
#undef REASON
};
