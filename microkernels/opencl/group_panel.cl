/* A slab of an operand on its way into a `__local` panel: SLAB steps of LANES lanes, by ITEMS work-items.

   panel[step * PITCH + lane] = from[place of the lane + place of step k + step], 0 where there is no such lane or step

   Neighbouring items take neighbours along whichever of lanes and steps lies contiguous; where `wide`, WIDTH elements
   each, which must all exist and be aligned. Each item holds its share between fetching and putting, so memory has as
   long to answer as a slab takes to multiply. */

/* Lane and step of element e of an item's share, where it takes `run` neighbours at a time. */
INLINE int lane_PANEL(int along_steps, int run, int e)
{
    const int first = (int)get_local_id(0) * run;
    return along_steps ? first / SLAB + e * ITEMS / SLAB : first % LANES + e * ITEMS % LANES;
}

INLINE int step_PANEL(int along_steps, int run, int e)
{
    const int first = (int)get_local_id(0) * run;
    return along_steps ? first % SLAB + e * ITEMS % SLAB : first / LANES + e * ITEMS / LANES;
}

INLINE void fetch_PANEL(T *share, const operand_T *o, walk_T walk, int k, int wide)
{
    const long begin = step_place_T(o, walk, k);
    const int run = wide ? WIDTH : 1;

    UNROLL
    for (int e = 0; e < SHARE; e += run) {
        const int lane = lane_PANEL(o->along_steps, run, e), step = step_PANEL(o->along_steps, run, e);
        if (wide) {
            const long place = place_T(o->lane, lane) + later_place_T(o, walk, k, begin, step);
            vstore_WIDE(load_wide_T(o->from + place), 0, share + e);
        } else {
            share[e] = 0;
            if (lane < o->lanes && k + step < walk.depth)
                share[e] = load_T(o->from + place_T(o->lane, lane) + later_place_T(o, walk, k, begin, step));
        }
    }
}

INLINE void put_PANEL(__local T *panel, const T *share, int along_steps, int wide)
{
    const int run = wide ? WIDTH : 1;

    UNROLL
    for (int e = 0; e < SHARE; e += run) {
        __local T *to = panel + step_PANEL(along_steps, run, e) * PITCH + lane_PANEL(along_steps, run, e);
        if (wide && !along_steps) {
            *(__local wide_T *)to = vload_WIDE(0, share + e);
        } else {
            UNROLL
            for (int s = 0; s < run; s++)
                to[s * PITCH] = share[e + s];
        }
    }
}
