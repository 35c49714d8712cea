/* Arrays with guards around them, in copies: first values, what the kernel makes of them, what the plain loops do. */
#if defined(__clang__)
#define TRY_WRAPS __attribute__((no_sanitize("integer")))
#else
#define TRY_WRAPS
#endif
enum { TRY_START, TRY_HAVE, TRY_WANT };
/* What is done to an array. The first: it is read, and its elements are indices; the last: perhaps set, then read. */
enum { TRY_INDEX, TRY_READ, TRY_SET, TRY_UPDATED, TRY_MAYBE_SET };

typedef struct try_argument {
    const char *name;
    char type;           /* f: float, d: double, B: uint8_t, H: uint16_t, b: int8_t, s: int16_t, i: int32_t, l: int64_t, h: f16,
                            e: bf16 */
    int use, rank, open; /* so many strides are told, from the first */
} try_argument;

typedef struct try_array {
    const try_argument *is;
    int64_t extent[TRY_RANK], stride[TRY_RANK], told[TRY_RANK];
    int64_t least, end; /* of indices */
    int64_t elements, width, shift, span, block; /* the last four in bytes: an element, before the array, it, a copy */
    unsigned char *memory, *copy[3];
    void *data; /* what a call gets */
} try_array;

static int try_is_float(const try_array *a) { return strchr("fdhe", a->is->type) != NULL; }

/* Memory with all bits set, which is no floating-point number. */
static unsigned char *try_memory(int64_t bytes)
{
    unsigned char *memory = (uint64_t)bytes < SIZE_MAX / 2 ? (unsigned char *)malloc((size_t)bytes) : NULL;
    if (memory) memset(memory, 0xFF, (size_t)bytes);
    return memory;
}

/* By turns, strides are dense and told as 0, dense and told, or with gaps; the start is aligned to 64, or just so. */
static void try_lay_out(try_array *a, int number, int round)
{
    int64_t within = 1;
    int d;
    a->width = 8;
    if (a->is->type == 'f' || a->is->type == 'i') a->width = 4;
    if (strchr("sHhe", a->is->type)) a->width = 2;
    if (a->is->type == 'b' || a->is->type == 'B') a->width = 1;
    a->span = a->width;
    a->elements = 1;
    for (d = a->is->rank - 1; d >= 0; d--) {
        a->stride[d] = within + (d < a->is->open && round % 3 == 2 ? (round / 3 + number) % 4 : 0);
        a->told[d] = round % 3 ? a->stride[d] : 0;
        a->elements *= a->extent[d];
        a->span += (a->extent[d] - 1) * a->stride[d] * a->width;
        within = a->stride[d] * (a->extent[d] > 1 ? a->extent[d] : 1);
    }
    if (!a->elements) a->span = 0;
    a->shift = TRY_GUARD + (round % 2 ? a->width : 0);
    a->block = (a->shift + a->span + TRY_GUARD + 63) / 64 * 64;
}

/* Takes the subscripts to the next element, in row-major order; returns where it lies in a copy. */
static int64_t try_next(const try_array *a, int64_t *subscript)
{
    int64_t at = a->shift;
    int d = a->is->rank - 1;
    while (d >= 0 && ++subscript[d] == a->extent[d]) subscript[d--] = 0;
    for (d = 0; d < a->is->rank; d++) at += subscript[d] * a->stride[d] * a->width;
    return at;
}

static double try_get(const try_array *a, int copy, int64_t at)
{
    union { float f; double d; uint8_t u; int8_t b; int16_t s; int32_t i; int64_t l; uint16_t h; } v;
    memcpy(&v, a->copy[copy] + (size_t)at, (size_t)a->width);
    switch (a->is->type) {
    case 'f': return (double)v.f;
    case 'd': return v.d;
    case 'B': return (double)v.u;
    case 'H': return (double)v.h;
    case 'b': return (double)v.b;
    case 's': return (double)v.s;
    case 'i': return (double)v.i;
#ifdef TRY_HALVES
    case 'h': return (double)try_f32_of_f16(v.h);
    case 'e': return (double)try_f32_of_bf16(v.h);
#endif
    default: return (double)v.l;
    }
}

static void try_put(const try_array *a, int64_t at, double value)
{
    union { float f; double d; uint8_t u; int8_t b; int16_t s; int32_t i; int64_t l; uint16_t h; } v;
    switch (a->is->type) {
    case 'f': v.f = (float)value; break;
    case 'd': v.d = value; break;
    case 'B': v.u = (uint8_t)value; break;
    case 'H': v.h = (uint16_t)value; break;
    case 'b': v.b = (int8_t)value; break;
    case 's': v.s = (int16_t)value; break;
    case 'i': v.i = (int32_t)value; break;
#ifdef TRY_HALVES
    case 'h': v.h = try_f16_of_f32((float)value); break;
    case 'e': v.h = try_bf16_of_f32((float)value); break;
#endif
    default: v.l = (int64_t)value;
    }
    memcpy(a->copy[TRY_START] + (size_t)at, &v, (size_t)a->width);
}

/* What rounds to 1 from above, the least normal number, and the greatest number, of floats. */
static void try_limits(const try_array *a, double *epsilon, double *least, double *most)
{
    const int wide = a->is->type == 'd', half = a->is->type == 'h';
    *epsilon = wide ? DBL_EPSILON : half ? 0.0009765625 : a->is->type == 'e' ? 0.0078125 : (double)FLT_EPSILON;
    *least = wide ? DBL_MIN : half ? 6.103515625e-5 : (double)FLT_MIN;
    *most = wide ? DBL_MAX : half ? 65504.0 : (double)FLT_MAX;
}

/* First values: floats of [-1, 1), integers of [-3, 3] or [0, 6]. For a delicate routine, which divides by them or takes roots,
   floats of [0.5, 1.5), and the diagonal of a square outweighs its rows. For one that drifts, which goes on from its own
   results, rows of small sums, so that rounding does not grow. */
TRY_WRAPS static void try_fill(const try_array *a, int seed, int delicate, int drifts)
{
    uint64_t state = UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(seed + 1);
    int64_t subscript[TRY_RANK] = {0}, at = a->shift, left;
    const int last = a->is->rank - 1, square = last > 0 && a->extent[last] == a->extent[last - 1];
    for (left = a->elements; left > 0; left--, at = try_next(a, subscript)) {
        double drawn, value;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        drawn = (double)(state >> 11) / 9007199254740992.0;
        value = delicate ? drawn + 0.5 : 2.0 * drawn - 1.0;
        if (a->is->use == TRY_INDEX) value = (double)a->least + floor(drawn * (double)(a->end - a->least));
        else if (!try_is_float(a)) value = floor(7.0 * drawn) - (strchr("BH", a->is->type) ? 0.0 : 3.0);
        else if (delicate && square && subscript[last] == subscript[last - 1]) value = 2.0 * (double)a->extent[last];
        else if (drifts && !delicate && last > 0) value /= (double)a->extent[last];
        try_put(a, at, value);
    }
}

typedef struct try_error {
    double excess; /* the largest error, as a fraction of what is allowed: more than 1 is wrong */
    const try_array *array;
    int64_t subscript[TRY_RANK];
    double have, want;
    const char *place; /* where something was written that must not be, if it was */
} try_error;

static int try_is_finite(double value) { return fabs(value) <= DBL_MAX; }

static int try_is_untouched(const unsigned char *at, int64_t bytes)
{
    while (bytes > 0 && *at == 0xFF) at++, bytes--;
    return bytes <= 0;
}

/* The mean of the absolute values that are wanted and finite; `strange` counts the others. */
static double try_mean(const try_array *a, int64_t *strange)
{
    int64_t subscript[TRY_RANK] = {0}, at = a->shift, finite = 0, left;
    double total = 0.0;
    for (left = a->elements; left > 0; left--, at = try_next(a, subscript)) {
        const double value = fabs(try_get(a, TRY_WANT, at));
        if (try_is_finite(value)) total += value, finite++;
        else ++*strange;
    }
    return finite > 0 ? total / (double)finite : 0.0;
}

/* The error of an element by what is allowed. Integers are equal; floats differ by `scale` at most, relative to the
   element and the mean. Nothing is asked where more than `most` is wanted, or no number, but to write nothing where
   nothing is: a sum that is nearly infinite may be so in another order. */
static double try_excess(const try_array *a, int64_t at, double scale, double mean, double least, double most)
{
    const unsigned char *const want = a->copy[TRY_WANT] + (size_t)at;
    const double wanted = try_get(a, TRY_WANT, at), found = try_get(a, TRY_HAVE, at);
    if (!memcmp(a->copy[TRY_HAVE] + (size_t)at, want, (size_t)a->width)) return 0.0;
    if (!try_is_float(a)) return DBL_MAX;
    if (!(fabs(wanted) <= most)) return try_is_untouched(want, a->width) ? DBL_MAX : 0.0;
    if (!try_is_finite(found)) return DBL_MAX;
    return fabs(found - wanted) / (scale * (fabs(wanted) + mean) + least);
}

/* The worst element, and whether all else is as it was. A sum of n terms may be off by 32 times the rounding that it
   is expected to have, which grows with the root of n. */
static void try_compare(const try_array *a, int64_t terms, try_error *worst)
{
    const int written = a->is->use > TRY_READ;
    int64_t subscript[TRY_RANK] = {0}, at = a->shift, strange = 0, left;
    const double mean = written ? try_mean(a, &strange) : 0.0;
    double epsilon, least, most;
    unsigned char *const have = a->copy[TRY_HAVE];
    const char *place = NULL;
    try_limits(a, &epsilon, &least, &most);
    for (left = written ? a->elements : 0; left > 0; left--, at = try_next(a, subscript)) {
        const double excess = try_excess(a, at, 32.0 * epsilon * sqrt((double)terms), mean, least, most / (double)terms);
        if (excess > worst->excess) {
            worst->excess = excess;
            worst->array = a;
            memcpy(worst->subscript, subscript, sizeof subscript);
            worst->have = try_get(a, TRY_HAVE, at);
            worst->want = try_get(a, TRY_WANT, at);
        }
        memset(have + (size_t)at, 0xFF, (size_t)a->width);
    }
    if (!written) place = memcmp(have, a->copy[TRY_START], (size_t)a->block) ? "to" : NULL;
    else if (!try_is_untouched(have, a->shift)) place = "before";
    else if (!try_is_untouched(have + (size_t)a->shift, a->span)) place = "between the rows of";
    else if (!try_is_untouched(have, a->block)) place = "behind";
    if (!place) return;
    worst->excess = DBL_MAX;
    worst->array = a;
    worst->place = place;
}

static void try_print_error(const try_error *e)
{
    const int digits = e->array->is->type == 'd' ? 17 : 9;
    int d;
    if (e->place) {
        printf(": writes %s %s\n", e->place, e->array->is->name);
        return;
    }
    printf(": %s[", e->array->is->name);
    for (d = 0; d < e->array->is->rank; d++) printf("%s%lld", d ? ", " : "", (long long)e->subscript[d]);
    printf("] is %.*g, not %.*g\n", digits, e->have, digits, e->want);
}
