#include "CNGHTTP2.h"

#if __has_include(<nghttp2/nghttp2.h>)

#ifdef NGHTTP2_EXTPRI_DEFAULT_URGENCY
// Weak: the program may run with an older library than the one it was built with.
extern int nghttp2_session_change_extpri_stream_priority(
    nghttp2_session *session, int32_t stream_id, const nghttp2_extpri *extpri,
    int ignore_client_signal) __attribute__((weak));
#endif

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
