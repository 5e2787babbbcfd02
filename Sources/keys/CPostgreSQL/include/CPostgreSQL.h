/*
 * libpq as Swift sees it. Only PostgreSQLKeyStore imports this module.
 */
#ifndef PORTCULLIS_CPOSTGRESQL_H
#define PORTCULLIS_CPOSTGRESQL_H

#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#elif __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#else
#error libpq is missing: install libpq-dev (Debian, Ubuntu) or libpq-devel \
(Fedora, Amazon Linux), then build again.
#endif

#ifndef LIBPQ_HAS_PIPELINING
#error This libpq is older than 14, the one of Ubuntu 22.04: build on a newer system.
#endif

#endif
