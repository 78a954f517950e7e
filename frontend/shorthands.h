// shorthands.h: what the files of shorthands share: mistakes that are refused under the name
// called, and the release of what was made on the way.
#ifndef FUSEC_FRONTEND_SHORTHANDS_H
#define FUSEC_FRONTEND_SHORTHANDS_H

#include "frontend/context.h"

static inline int
from_front(int axis, int rank)
{
    return axis < 0 ? axis + rank : axis;
}

struct words {
    char text[192];
};
_Static_assert(sizeof(struct words) > MAX_RANK * 21 + 8, "the largest type in words");
struct words type_words(fc_tensor x); // f32[2,3]

// Whether axis, negative from the end, is one of n; x's context hears of it if not. Without a
// tensor there is nothing to say: the op that is called next refuses the handle.
bool has_axis(const char *file, int line, const char *name, fc_tensor x, int axis, int n);

// The thread's first error, unless it has one, is FC_INVALID with these words. An invalid handle.
fc_tensor refused(fc_context *ctx, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

// made, after what it was made of: that has done its duty.
static inline fc_tensor
made_of(fc_tensor part, fc_tensor made)
{
    if (fc_valid(part))
        fc_release(part);
    return made;
}

#endif
