/*
 * libnghttp2 as Swift sees it. Only HTTPWire/HTTP2 imports this module.
 */
#ifndef PORTCULLIS_CNGHTTP2_H
#define PORTCULLIS_CNGHTTP2_H

#if !__has_include(<nghttp2/nghttp2.h>)
#error libnghttp2 is missing: install libnghttp2-dev (Debian, Ubuntu) or libnghttp2-devel \
(Fedora, Amazon Linux), then build again.
#else

#include <nghttp2/nghttp2.h>

#if NGHTTP2_VERSION_NUM < 0x012b00
#error This libnghttp2 is older than 1.43, the one of Ubuntu 22.04: build on a newer system.
#endif

// Leaves it to the caller to count the client's resets and the CONTINUATION frames of a head. Since
// 1.57 and 1.61 nghttp2 ends the connection by limits of its own.
void cnghttp2_count_nothing(nghttp2_option *option);

// Has a server's stream send a frame of content in its turn, as all others, whatever priority its
// client asks for. A library without RFC 9218 does so anyway.
void cnghttp2_serve_in_turn(nghttp2_session *session, int32_t stream);

#endif
#endif
