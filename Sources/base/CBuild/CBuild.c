#include "CBuild.h"

const char *cbuild_name(void) { return PORTCULLIS_BUILD; }
