// shorthands.h: what the files of shorthands share: axes that are refused under the name called.
#ifndef FUSEC_FRONTEND_SHORTHANDS_H
#define FUSEC_FRONTEND_SHORTHANDS_H

#include "frontend/context.h"

static inline int
from_front(int axis, int rank)
{
    return axis < 0 ? axis + rank : axis;
}

// Whether axis, negative from the end, is one of n; x's context hears of it if not. Without a
// tensor there is nothing to say: the op that is called next refuses the handle.
bool has_axis(const char *file, int line, const char *name, fc_tensor x, int axis, int n);

#endif
