static T *pfx_a_T, *pfx_b_T, *pfx_c_T, *pfx_wanted_T;

static T pfx_value_T(void) { return (T)((int)pfx_random(17) - 8) / 8; }

/* C as it is before a call: A and B stay as they are. */
static void pfx_fill_T(void)
{
    for (int64_t i = 0; i < PFX_TRIED; i++)
        pfx_c_T[i] = pfx_wanted_T[i] = pfx_value_T();
}

/* Every word of C and around it is what was wanted. */
static void pfx_compare_T(const char *routine, int trial)
{
    for (int64_t i = 0; i < PFX_TRIED; i++)
        if (!(pfx_c_T[i] == pfx_wanted_T[i])) {
            printf("%s: trial %d, word %d: %g, not %g\n", routine, trial, (int)i, (double)pfx_c_T[i], (double)pfx_wanted_T[i]);
            pfx_failures++;
            return;
        }
}

static void pfx_take_arrays_T(void)
{
    pfx_a_T = (T *)pfx_words(sizeof(T));
    pfx_b_T = (T *)pfx_words(sizeof(T));
    pfx_c_T = (T *)pfx_words(sizeof(T));
    pfx_wanted_T = (T *)pfx_words(sizeof(T));
    for (int64_t i = 0; i < PFX_WORDS; i++) {
        pfx_a_T[i] = i < PFX_TRIED ? pfx_value_T() : 0;
        pfx_b_T[i] = i < PFX_TRIED ? pfx_value_T() : 0;
        pfx_c_T[i] = pfx_wanted_T[i] = 0;
    }
}

static void pfx_drop_arrays_T(void)
{
    free(pfx_a_T);
    free(pfx_b_T);
    free(pfx_c_T);
    free(pfx_wanted_T);
}
