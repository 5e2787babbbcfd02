#include "CNGHTTP2.h"

#if __has_include(<nghttp2/nghttp2.h>)

// Weak: the program may run with an older library than the one it was built with, and some systems
// have added the two options to an older version.
extern void nghttp2_option_set_stream_reset_rate_limit(
    nghttp2_option *option, uint64_t burst, uint64_t rate) __attribute__((weak));
extern void nghttp2_option_set_max_continuations(nghttp2_option *option, size_t val)
    __attribute__((weak));
#ifdef NGHTTP2_EXTPRI_DEFAULT_URGENCY
extern int nghttp2_session_change_extpri_stream_priority(
    nghttp2_session *session, int32_t stream_id, const nghttp2_extpri *extpri,
    int ignore_client_signal) __attribute__((weak));
#endif

void cnghttp2_count_nothing(nghttp2_option *option) {
    if (nghttp2_option_set_stream_reset_rate_limit) {
        nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX, UINT64_MAX);
    }
    if (nghttp2_option_set_max_continuations) {
        nghttp2_option_set_max_continuations(option, SIZE_MAX);
    }
}

void cnghttp2_serve_in_turn(nghttp2_session *session, int32_t stream) {
#ifdef NGHTTP2_EXTPRI_DEFAULT_URGENCY
    if (!nghttp2_session_change_extpri_stream_priority) return;
    nghttp2_extpri equal = {NGHTTP2_EXTPRI_DEFAULT_URGENCY, 1};
    (void)nghttp2_session_change_extpri_stream_priority(session, stream, &equal, 1);
#else
    (void)session;
    (void)stream;
#endif
}

#endif
