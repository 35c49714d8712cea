/* A routine at one trial's sizes: what the plain loops make of its arrays, and checked calls. */
enum { TRY_PLAIN, TRY_GIVEN, TRY_ALLOCATING }; /* plain loops; a workspace that is given; one of its own */

typedef struct try_case try_case;

typedef struct try_routine {
    const char *name;
    int sizes, arrays, trials, delicate, drifts; /* drifts: a call depends on what the last one left */
    const char *const *size;
    const try_argument *array;
    const int64_t *trial; /* of each: flops (0: not to be measured), how many terms a sum has, and the sizes */
    void (*shape)(const int64_t *size, int64_t *extent);
    int64_t (*need)(const int64_t *size, int how, int32_t threads); /* bytes of the workspace */
    pfx_status (*call)(const try_case *c, int how, int32_t threads);
} try_routine;

struct try_case {
    const try_routine *routine;
    const int64_t *size;
    int64_t flops, terms, bytes; /* bytes: of the workspace */
    int round;
    try_array array[TRY_ARRAYS];
    unsigned char *memory;
    void *workspace;
};

/* The shapes at a trial; nothing is allocated yet. */
static try_case try_describe(const try_routine *routine, int trial, int round)
{
    const int64_t *const row = routine->trial + trial * (routine->sizes + 2);
    int64_t extents[TRY_ARRAYS * (TRY_RANK + 2)], *extent = extents;
    try_case c;
    int n;
    memset(&c, 0, sizeof c);
    c.routine = routine;
    c.flops = row[0];
    c.terms = row[1];
    c.size = row + 2;
    c.round = round;
    routine->shape(c.size, extents);
    for (n = 0; n < routine->arrays; n++) {
        c.array[n].is = &routine->array[n];
        memcpy(c.array[n].extent, extent, sizeof *extent * (size_t)routine->array[n].rank);
        extent += routine->array[n].rank;
        if (routine->array[n].use == TRY_INDEX) {
            c.array[n].least = *extent++;
            c.array[n].end = *extent++;
        }
        try_lay_out(&c.array[n], n, round);
    }
    return c;
}

/* A workspace between guards, for kernels at any address; 0 where there is no memory. */
static int try_take_workspace(try_case *c, int how, int32_t threads)
{
    const int64_t bytes = c->routine->need(c->size, how, threads);
    c->bytes = bytes > 0 ? bytes : 0;
    c->memory = try_memory(c->bytes + 3 * TRY_GUARD);
    if (!c->memory) return 0;
    c->workspace = c->memory + (size_t)(TRY_GUARD + (64u - (uintptr_t)c->memory % 64u) % 64u) + (how == TRY_PLAIN ? 0 : c->round % 5);
    return 1;
}

/* Gives arrays their first values in a copy, all or the written ones, and takes that copy for the next call. */
static void try_restart(try_case *c, int copy, int all)
{
    int n;
    for (n = 0; n < c->routine->arrays; n++) {
        try_array *const a = &c->array[n];
        const int written = a->is->use > TRY_READ, own = written || copy == TRY_HAVE;
        if (written || (own && all)) memcpy(a->copy[copy], a->copy[TRY_START], (size_t)a->block);
        a->data = a->copy[own ? copy : TRY_START] + (size_t)a->shift;
    }
}

/* Lets the plain loops, or the kernels in use, make what is wanted. -1: no memory; else whether all of it is finite. */
static int try_want(try_case *c, int how)
{
    int64_t strange = 0;
    int n;
    if (!try_take_workspace(c, how, 1)) return -1;
    try_restart(c, TRY_WANT, 1);
    strange = c->routine->call(c, how, 1) != PFX_OK;
    free(c->memory);
    for (n = 0; n < c->routine->arrays; n++)
        if (c->array[n].is->use > TRY_READ) (void)try_mean(&c->array[n], &strange);
    return !strange;
}

/* Memory, first values, and what is wanted: 0 where there is no memory. An array that may be set before it is read
   starts as no numbers; where these come through, it gets values. */
static int try_prepare(try_case *c, int how)
{
    int n, m, again = 0, found;
    for (n = 0; n < c->routine->arrays; n++) {
        try_array *const a = &c->array[n];
        a->memory = try_memory(3 * a->block + 64);
        if (!a->memory) return 0;
        for (m = 0; m < 3; m++) a->copy[m] = a->memory + (size_t)(64u - (uintptr_t)a->memory % 64u) % 64u + (size_t)(a->block * m);
        if (a->is->use <= TRY_READ || a->is->use == TRY_UPDATED) try_fill(a, n, c->routine->delicate, c->routine->drifts);
        again |= a->is->use == TRY_MAYBE_SET;
    }
    found = try_want(c, how);
    if (found != 0 || !again) return found >= 0;
    for (n = 0; n < c->routine->arrays; n++)
        if (c->array[n].is->use == TRY_MAYBE_SET) try_fill(&c->array[n], n, c->routine->delicate, c->routine->drifts);
    return try_want(c, how) >= 0;
}

static void try_release(try_case *c)
{
    int n;
    for (n = 0; n < c->routine->arrays; n++) free(c->array[n].memory);
}

static void try_print_sizes(const try_case *c)
{
    int n;
    for (n = 0; n < c->routine->sizes; n++) printf(" %s=%lld", c->routine->size[n], (long long)c->size[n]);
}

/* One call, checked; `worst` becomes the worst error of all calls. Says what is wrong and returns 0 where it is. */
static int try_check(try_case *c, const char *isa, int how, int32_t threads, double *worst)
{
    pfx_status status;
    try_error error;
    int64_t before;
    int n, d, beside;
    memset(&error, 0, sizeof error);
    if (!try_take_workspace(c, how, threads)) return 1;
    try_restart(c, TRY_HAVE, 1);
    status = c->routine->call(c, how, threads);
    for (n = 0; n < c->routine->arrays; n++) try_compare(&c->array[n], c->terms, &error);
    before = (unsigned char *)c->workspace - c->memory;
    beside = !try_is_untouched(c->memory, before) ||
             !try_is_untouched(c->memory + (size_t)(before + c->bytes), 3 * TRY_GUARD - before);
    free(c->memory);
    if (error.excess > *worst) *worst = error.excess;
    if (status == PFX_OK && !beside && error.excess <= 1.0) return 1;
    printf("    %s, %s, %d thread(s), workspace %s:", c->routine->name, isa, (int)threads, how == TRY_GIVEN ? "given" : "its own");
    try_print_sizes(c);
    for (n = 0; n < c->routine->arrays && c->round % 3 == 2; n++)
        for (d = 0; d < c->array[n].is->open; d++) printf(" (%s by %lld)", c->array[n].is->name, (long long)c->array[n].stride[d]);
    if (status != PFX_OK || beside) printf(": %s\n", beside ? "writes beside its workspace" : pfx_status_text(status));
    else try_print_error(&error);
    return 0;
}

/* A call by either function that must return a status and change nothing. */
static int try_refused(try_case *c, const char *what, const char *name, pfx_status status, int32_t threads)
{
    int how, n, right = 1;
    for (how = TRY_GIVEN; how <= TRY_ALLOCATING; how++) {
        const pfx_status found = c->routine->call(c, how, threads);
        int changed = 0;
        for (n = 0; n < c->routine->arrays; n++)
            changed |= memcmp(c->array[n].copy[TRY_HAVE], c->array[n].copy[TRY_START], (size_t)c->array[n].block);
        if (found == status && !changed) continue;
        printf("    %s with %s %s: status \"%s\", not \"%s\"%s\n", c->routine->name, what, name, pfx_status_text(found),
               pfx_status_text(status), changed ? ", and arrays are changed" : "");
        right = 0;
    }
    return right;
}

static int try_refused_array(try_case *c, try_array *a)
{
    void *const data = a->data;
    int d, n, right;
    a->data = NULL;
    right = try_refused(c, "null for", a->is->name, PFX_NULL_POINTER, 1);
    a->data = (char *)data + 1;
    if (a->width > 1) right &= try_refused(c, "a misaligned", a->is->name, PFX_MISALIGNED, 1);
    for (n = 0; n < c->routine->arrays; n++) {
        a->data = c->array[n].data;
        if (a->is->use > TRY_READ && a != &c->array[n]) right &= try_refused(c, "an overlapping", a->is->name, PFX_OVERLAP, 1);
    }
    a->data = data;
    for (d = 0; d < a->is->open; d++) {
        const int64_t told = a->told[d];
        a->told[d] = told > 1 ? told - 1 : -1;
        right &= try_refused(c, "too short a stride for", a->is->name, PFX_BAD_STRIDE, 1);
        a->told[d] = told;
    }
    return right;
}

/* Whether a routine refuses what it must, at the first trial at which each array has some elements. */
static int try_refuses(const try_routine *routine)
{
    int64_t size[TRY_SIZES];
    int trial = 0, n, right = 1;
    try_case c;
    do {
        if (trial == routine->trials) return 1;
        c = try_describe(routine, trial++, 4);
        for (n = 0; n < routine->arrays && c.array[n].elements > 1; n++) continue;
    } while (n < routine->arrays && routine->trials > 1);
    if (try_prepare(&c, TRY_PLAIN) && try_take_workspace(&c, TRY_GIVEN, 1)) {
        memcpy(size, c.size, sizeof *size * (size_t)routine->sizes);
        c.size = size;
        try_restart(&c, TRY_HAVE, 1);
        for (n = 0; n < routine->arrays; n++) right &= try_refused_array(&c, &c.array[n]);
        for (n = 0; n < routine->sizes; n++) {
            const int64_t value = size[n];
            size[n] = -1;
            right &= try_refused(&c, "a negative", routine->size[n], PFX_BAD_SIZE, 1);
            size[n] = value;
        }
        if (TRY_THREADS) right &= try_refused(&c, "no", "threads", PFX_BAD_THREADS, 0);
        c.bytes = 0;
        if (routine->call(&c, TRY_GIVEN, 1) == PFX_WORKSPACE_TOO_SMALL) { /* not where the kernel in use takes none */
            c.bytes = routine->need(size, TRY_GIVEN, 1) - 1;
            if (routine->call(&c, TRY_GIVEN, 1) != PFX_WORKSPACE_TOO_SMALL) right = 0, printf("    too small a workspace is taken\n");
        }
        free(c.memory);
    }
    try_release(&c);
    return right;
}
