/* What the writer and the verifier of bill files (bill/file.h) agree upon. */
#ifndef ST_BILL_FILE_FORMAT_H
#define ST_BILL_FILE_FORMAT_H

#include <stddef.h>

#define ST_BILLSUM       8  /* bytes of a line's checksum */
#define ST_BILLSUM_TAIL  26 /* ,"sum":"0123456789abcdef"} */
#define ST_BILL_TAG_LINE 0x06
#define ST_BILL_TAG_FILE 0x07

/* The checksum of a line: of its bytes up to ,"sum": and of the sum of the line before, zeros for the first. */
void st_billsum(const unsigned char before[ST_BILLSUM], const char *bytes, size_t len,
                unsigned char ret[ST_BILLSUM]);

#endif
