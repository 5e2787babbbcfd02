/*
 * OpenSSL 3 as Swift sees it: the headers, and functions in place of the macros that Swift cannot
 * import. On a system where it can't be built, the build ends with the one sentence that says so:
 * the gateway and SoftwareAuthenticator are made of this target, and it is compiled first.
 *
 * Only Cryptography, Signatures and EventLoops/TLS import this module, and no type of it appears in
 * their public signatures.
 *
 * Some functions that are used are deprecated since 3.0 (SHA256_*, EC_KEY_*, ECDSA_sign): they
 * are the ones that work without a fetch, a lock or an allocation per call, and all of 3.x has
 * them.
 */
#ifndef PORTCULLIS_COPENSSL_H
#define PORTCULLIS_COPENSSL_H

#if !defined(__linux__)
#error portcullis and its library SoftwareAuthenticator are supported on Linux only: \
build them there, or in a container of Linux.
#elif !__has_include(<openssl/opensslv.h>)
#error OpenSSL 3 is missing: install libssl-dev (Debian, Ubuntu) or openssl-devel \
(Fedora, Amazon Linux), then build again.
#else

#define OPENSSL_SUPPRESS_DEPRECATED 1

#include <string.h>

#include <openssl/opensslv.h>

#if !defined(OPENSSL_VERSION_MAJOR) || OPENSSL_VERSION_MAJOR < 3
#error This OpenSSL is older than 3.0: build on a system that has OpenSSL 3.
#endif

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/cms.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/objects.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

/* subjectAltName */

/* The names of a certificate; NULL when it has none. */
static inline GENERAL_NAMES *copenssl_subject_names(const X509 *x)
{
    return X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
}
static inline int copenssl_names_count(const GENERAL_NAMES *names)
{
    return names ? sk_GENERAL_NAME_num(names) : 0;
}
/* The bytes of a DNS name, which belong to the names; NULL for a name of another kind. */
static inline const unsigned char *copenssl_dns_name(
    const GENERAL_NAMES *names, int index, int *length)
{
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
    if (!name || name->type != GEN_DNS)
        return NULL;
    *length = ASN1_STRING_length(name->d.dNSName);
    return ASN1_STRING_get0_data(name->d.dNSName);
}

/* BIO */

/* The bytes a memory BIO holds; they belong to the BIO. */
static inline long copenssl_bio_mem_data(BIO *bio, char **data)
{
    return BIO_get_mem_data(bio, data);
}
static inline void copenssl_bio_set_retry_read(BIO *bio)
{
    BIO_set_retry_read(bio);
}
static inline void copenssl_bio_set_retry_write(BIO *bio)
{
    BIO_set_retry_write(bio);
}
static inline void copenssl_bio_clear_retry_flags(BIO *bio)
{
    BIO_clear_retry_flags(bio);
}

/* SSL */

static inline long copenssl_ssl_ctx_set_mode(SSL_CTX *ctx, long mode)
{
    return SSL_CTX_set_mode(ctx, mode);
}
static inline long copenssl_ssl_set_mode(SSL *ssl, long mode)
{
    return SSL_set_mode(ssl, mode);
}
static inline int copenssl_ssl_ctx_set_min_proto_version(SSL_CTX *ctx, int version)
{
    return (int)SSL_CTX_set_min_proto_version(ctx, version);
}
static inline int copenssl_ssl_ctx_set_max_proto_version(SSL_CTX *ctx, int version)
{
    return (int)SSL_CTX_set_max_proto_version(ctx, version);
}
static inline long copenssl_ssl_ctx_set_session_cache_mode(SSL_CTX *ctx, long mode)
{
    return SSL_CTX_set_session_cache_mode(ctx, mode);
}
static inline long copenssl_ssl_ctx_set_session_cache_size(SSL_CTX *ctx, long size)
{
    return SSL_CTX_sess_set_cache_size(ctx, size);
}
static inline int copenssl_ssl_ctx_set_groups(SSL_CTX *ctx, const char *list)
{
    return (int)SSL_CTX_set1_groups_list(ctx, list);
}
/* Whether a context has a cipher suite of this name, of TLS 1.2 or 1.3. */
static inline int copenssl_has_cipher(const SSL_CTX *ctx, const char *name)
{
    const STACK_OF(SSL_CIPHER) *ciphers = SSL_CTX_get_ciphers(ctx);
    for (int index = 0; ciphers && index < sk_SSL_CIPHER_num(ciphers); index++)
        if (!strcmp(SSL_CIPHER_get_name(sk_SSL_CIPHER_value(ciphers, index)), name))
            return 1;
    return 0;
}
static inline int copenssl_ssl_ctx_add0_chain_cert(SSL_CTX *ctx, X509 *x)
{
    return (int)SSL_CTX_add0_chain_cert(ctx, x);
}
static inline int copenssl_ssl_ctx_add1_chain_cert(SSL_CTX *ctx, X509 *x)
{
    return (int)SSL_CTX_add1_chain_cert(ctx, x);
}
static inline int copenssl_ssl_ctx_clear_chain_certs(SSL_CTX *ctx)
{
    return (int)SSL_CTX_clear_chain_certs(ctx);
}
static inline long copenssl_ssl_ctx_set_servername_callback(
    SSL_CTX *ctx, int (*callback)(SSL *, int *, void *))
{
    return SSL_CTX_set_tlsext_servername_callback(ctx, callback);
}
static inline long copenssl_ssl_ctx_set_servername_arg(SSL_CTX *ctx, void *argument)
{
    return SSL_CTX_set_tlsext_servername_arg(ctx, argument);
}
static inline int copenssl_ssl_set_host_name(SSL *ssl, const char *name)
{
    return (int)SSL_set_tlsext_host_name(ssl, name);
}
static inline int copenssl_ssl_want_read(const SSL *ssl)
{
    return SSL_want_read(ssl);
}
static inline int copenssl_ssl_want_write(const SSL *ssl)
{
    return SSL_want_write(ssl);
}
static inline void *copenssl_ssl_get_app_data(const SSL *ssl)
{
    return SSL_get_app_data(ssl);
}
static inline int copenssl_ssl_set_app_data(SSL *ssl, void *data)
{
    return SSL_set_app_data(ssl, (char *)data);
}
static inline uint64_t copenssl_ssl_ctx_set_options(SSL_CTX *ctx, uint64_t options)
{
    return SSL_CTX_set_options(ctx, options);
}
static inline const char *copenssl_ssl_cipher_name(const SSL *ssl)
{
    return SSL_get_cipher_name(ssl);
}
static inline X509 *copenssl_ssl_get1_peer_certificate(const SSL *ssl)
{
    return SSL_get1_peer_certificate(ssl);
}

/* Whether a certificate demands a stapled response: status_request, 5, in its TLS features. */
static inline int copenssl_demands_staple(const X509 *x)
{
    TLS_FEATURE *features = X509_get_ext_d2i(x, NID_tlsfeature, NULL, NULL);
    int found = 0;
    for (int index = 0; features && index < sk_ASN1_INTEGER_num(features); index++)
        if (ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features, index)) == TLSEXT_TYPE_status_request)
            found = 1;
    TLS_FEATURE_free(features);
    return found;
}

/* HMAC-SHA-256 for a ticket. */
static inline int copenssl_ticket_mac(const unsigned char *key, size_t length, EVP_MAC_CTX *mac)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[3];
    params[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key, length);
    params[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0);
    params[2] = OSSL_PARAM_construct_end();
    return EVP_MAC_CTX_set_params(mac, params);
}

static const unsigned long copenssl_XN_FLAG_RFC2253 = XN_FLAG_RFC2253;

static const uint64_t copenssl_SSL_OP_NO_RENEGOTIATION = SSL_OP_NO_RENEGOTIATION;
static const uint64_t copenssl_SSL_OP_NO_COMPRESSION = SSL_OP_NO_COMPRESSION;
static const uint64_t copenssl_SSL_OP_NO_TICKET = SSL_OP_NO_TICKET;
static const uint64_t copenssl_SSL_OP_CIPHER_SERVER_PREFERENCE = SSL_OP_CIPHER_SERVER_PREFERENCE;
static const uint64_t copenssl_SSL_OP_PRIORITIZE_CHACHA = SSL_OP_PRIORITIZE_CHACHA;
static const uint64_t copenssl_SSL_OP_IGNORE_UNEXPECTED_EOF = SSL_OP_IGNORE_UNEXPECTED_EOF;
static const uint64_t copenssl_SSL_OP_NO_SSLv3 = SSL_OP_NO_SSLv3;
static const uint64_t copenssl_SSL_OP_NO_TLSv1 = SSL_OP_NO_TLSv1;
static const uint64_t copenssl_SSL_OP_NO_TLSv1_1 = SSL_OP_NO_TLSv1_1;
static const uint64_t copenssl_SSL_OP_ENABLE_KTLS = SSL_OP_ENABLE_KTLS;

static const long copenssl_SSL_MODE_RELEASE_BUFFERS = SSL_MODE_RELEASE_BUFFERS;
static const long copenssl_SSL_MODE_ENABLE_PARTIAL_WRITE = SSL_MODE_ENABLE_PARTIAL_WRITE;
static const long copenssl_SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER =
    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;
static const long copenssl_SSL_MODE_AUTO_RETRY = SSL_MODE_AUTO_RETRY;

#endif
#endif
