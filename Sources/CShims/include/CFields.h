/* Addresses of fields in the blocks of CAppend.h, for the atomic calls:
 * `cwi_lane_current_at(lane)` is the address of lane->current. Swift would need an offset by key
 * path, which may be nil. */
#ifndef CORDWOOD_FIELDS_H
#define CORDWOOD_FIELDS_H
#include <stddef.h>
#include "CAppend.h"

#define CWI_FIELD(block, field)                                                                    \
    static inline void *_Nonnull cwi_##block##_##field##_at(struct cwi_##block *_Nonnull from) {   \
        return (char *)from + offsetof(struct cwi_##block, field);                                 \
    }

CWI_FIELD(process, boottime_ahead)
CWI_FIELD(process, engines)
CWI_FIELD(process, monotonic_ahead)
CWI_FIELD(process, pool_used)
CWI_FIELD(process, sites)
CWI_FIELD(process, sites_index)
CWI_FIELD(process, sites_lock)
CWI_FIELD(process, sites_used)

CWI_FIELD(engine, catalogs)
CWI_FIELD(engine, child_dropped)
CWI_FIELD(engine, held_ticks)
CWI_FIELD(engine, http_on)
CWI_FIELD(engine, http_rules)
CWI_FIELD(engine, lane)
CWI_FIELD(engine, lanes_fd)
CWI_FIELD(engine, lanes_look_ns)
CWI_FIELD(engine, lanes_path)
CWI_FIELD(engine, made_bytes)
CWI_FIELD(engine, made_limit)
CWI_FIELD(engine, names_bytes)
CWI_FIELD(engine, origins)
CWI_FIELD(engine, process_name)
CWI_FIELD(engine, quota_bytes)
CWI_FIELD(engine, refusal)
CWI_FIELD(engine, refusal_ns)
CWI_FIELD(engine, resource_now)
CWI_FIELD(engine, ring)
CWI_FIELD(engine, ring_max)
CWI_FIELD(engine, segment_bytes)
CWI_FIELD(engine, segments)
CWI_FIELD(engine, uncounted)
CWI_FIELD(engine, wake)

CWI_FIELD(lane, catalog_lock)
CWI_FIELD(lane, counts_late)
CWI_FIELD(lane, current)
CWI_FIELD(lane, dropped_by)
CWI_FIELD(lane, full_until_ns)
CWI_FIELD(lane, helper_started)
CWI_FIELD(lane, lock_fd)
CWI_FIELD(lane, name)
CWI_FIELD(lane, name_until_ns)
CWI_FIELD(lane, next_serial)
CWI_FIELD(lane, numbered)
CWI_FIELD(lane, record_bytes)
CWI_FIELD(lane, records)
CWI_FIELD(lane, renew)
CWI_FIELD(lane, reporting)
CWI_FIELD(lane, resource)
CWI_FIELD(lane, segment_maker)
CWI_FIELD(lane, supply_late)
CWI_FIELD(lane, slow_appends)
CWI_FIELD(lane, spare)
CWI_FIELD(lane, wanted)

CWI_FIELD(segment, fd)
CWI_FIELD(segment, lost)
CWI_FIELD(segment, populated)
CWI_FIELD(segment, ready)
CWI_FIELD(segment, state)

CWI_FIELD(thread, chunk)
CWI_FIELD(thread, chunk_sequence)
CWI_FIELD(thread, engine)
CWI_FIELD(thread, name)
CWI_FIELD(thread, salt)
CWI_FIELD(thread, segment)
CWI_FIELD(thread, state)
CWI_FIELD(thread, verdict)

CWI_FIELD(tls, current)

#undef CWI_FIELD
#endif
