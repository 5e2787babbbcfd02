/*
 * libcurl as Swift sees it: functions in place of those with a variable number of arguments, which
 * Swift cannot call. Only Gateway/HTTPSCalls imports this module.
 */
#ifndef PORTCULLIS_CCURL_H
#define PORTCULLIS_CCURL_H

#if !__has_include(<curl/curl.h>)
#error libcurl is missing: install libcurl4-openssl-dev (Debian, Ubuntu) or libcurl-devel \
(Fedora, Amazon Linux), then build again.
#else

/* Without the macros that look at the types of arguments: here each function has one type. */
#define CURL_DISABLE_TYPECHECK 1
#include <curl/curl.h>

#if LIBCURL_VERSION_NUM < 0x075100
#error This libcurl is older than 7.81, the one of Ubuntu 22.04: build on a newer system.
#endif

static inline CURLcode ccurl_set_number(CURL *call, CURLoption option, long value)
{
    return curl_easy_setopt(call, option, value);
}

/* The text is copied. */
static inline CURLcode ccurl_set_text(CURL *call, CURLoption option, const char *text)
{
    return curl_easy_setopt(call, option, text);
}

static inline CURLcode ccurl_set_pointer(CURL *call, CURLoption option, void *pointer)
{
    return curl_easy_setopt(call, option, pointer);
}

/* The bytes are copied. */
static inline CURLcode ccurl_set_bytes(
    CURL *call, CURLoption option, const void *bytes, size_t count)
{
    struct curl_blob blob = { .data = (void *)bytes, .len = count, .flags = CURL_BLOB_COPY };
    return curl_easy_setopt(call, option, &blob);
}

/* The bytes are copied. */
static inline CURLcode ccurl_set_content(CURL *call, const void *bytes, size_t count)
{
    CURLcode code = curl_easy_setopt(call, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
    if (code != CURLE_OK) return code;
    return curl_easy_setopt(call, CURLOPT_COPYPOSTFIELDS, bytes);
}

typedef size_t (*ccurl_receiver)(char *bytes, size_t size, size_t count, void *owner);

static inline CURLcode ccurl_set_receiver(CURL *call, ccurl_receiver receiver, void *owner)
{
    CURLcode code = curl_easy_setopt(call, CURLOPT_WRITEFUNCTION, receiver);
    if (code != CURLE_OK) return code;
    return curl_easy_setopt(call, CURLOPT_WRITEDATA, owner);
}

static inline CURLcode ccurl_set_field_receiver(CURL *call, ccurl_receiver receiver, void *owner)
{
    CURLcode code = curl_easy_setopt(call, CURLOPT_HEADERFUNCTION, receiver);
    if (code != CURLE_OK) return code;
    /* A proxy's answer to CONNECT has fields of its own. */
    code = curl_easy_setopt(call, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (code != CURLE_OK) return code;
    return curl_easy_setopt(call, CURLOPT_HEADERDATA, owner);
}

static inline CURLcode ccurl_begin(void)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT);
}

/*
 * TLS 1.2 or newer, and HTTP/1.1. A call that times out ends its connection. On a connection of
 * HTTP/2 it ends its stream alone, and the next call would be put on the same dead connection.
 */
static inline CURLcode ccurl_set_versions(CURL *call)
{
    CURLcode code = curl_easy_setopt(call, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (code != CURLE_OK) return code;
    return curl_easy_setopt(call, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
}

/* Only https: for the call itself, and no redirect is followed anyway. */
static inline CURLcode ccurl_allow_https_only(CURL *call)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(call, CURLOPT_PROTOCOLS_STR, "https");
#else
    return curl_easy_setopt(call, CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTPS);
#endif
}

/* Also http. */
static inline CURLcode ccurl_allow_http(CURL *call)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(call, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return curl_easy_setopt(call, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/*
 * A call that ends while its name is looked up does not wait for the resolver. Before 7.87 it does.
 */
static inline CURLcode ccurl_leave_resolver(CURL *call)
{
#if LIBCURL_VERSION_NUM >= 0x075700
    return curl_easy_setopt(call, CURLOPT_QUICK_EXIT, 1L);
#else
    (void)call;
    return CURLE_OK;
#endif
}

static inline long ccurl_number(CURL *call, CURLINFO info)
{
    long value = 0;
    return curl_easy_getinfo(call, info, &value) == CURLE_OK ? value : 0;
}

/*
 * Whether a byte of the request may have left. Where a new connection was made and its handshake
 * has not ended, none has: what was sent was for a proxy or the handshake.
 */
static inline int ccurl_has_sent(CURL *call)
{
    curl_off_t handshake = 0;
    if (curl_easy_getinfo(call, CURLINFO_APPCONNECT_TIME_T, &handshake) != CURLE_OK) return 1;
    if (ccurl_number(call, CURLINFO_NUM_CONNECTS) > 0 && handshake == 0) return 0;
    return ccurl_number(call, CURLINFO_REQUEST_SIZE) > 0;
}

/* Seconds of Retry-After, also where it is a date; 0 without it. */
static inline int64_t ccurl_retry_after(CURL *call)
{
    curl_off_t value = 0;
    return curl_easy_getinfo(call, CURLINFO_RETRY_AFTER, &value) == CURLE_OK ? value : 0;
}

/* The next call that has ended; NULL when there is none. */
static inline CURL *ccurl_next_end(CURLM *calls, CURLcode *result)
{
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(calls, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE) continue;
        *result = message->data.result;
        return message->easy_handle;
    }
    return NULL;
}

static inline CURLMcode ccurl_set_kept_connections(CURLM *calls, long count)
{
    return curl_multi_setopt(calls, CURLMOPT_MAXCONNECTS, count);
}

#endif
#endif
