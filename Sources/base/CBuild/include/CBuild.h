/* What tells this build from others of the same version. Package.swift defines it. */
#ifndef PORTCULLIS_CBUILD_H
#define PORTCULLIS_CBUILD_H

/* What follows the version's numbers: empty for a release, else as in `+37.g2173252`. */
const char *cbuild_name(void);

#endif
