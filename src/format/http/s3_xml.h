/* s3_xml.h -- the XML that S3 servers answer with. Pure.
 * 1. A subset: elements, attributes (skipped), text, CDATA, comments, the XML declaration, the five
 * named entities and numeric ones. A document type is refused: nothing is ever expanded.
 * 2. Depth, name and text lengths have maxima. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

#define S3_XML_PATH_MAX 256
#define S3_XML_TEXT_MAX 8192
#define S3_XML_DEPTH_MAX 16

/* Called when an element ends. path: names from the root, joined by '/', without prefixes of name
 * spaces ("ListBucketResult/Contents/Key"). text: of an element without children; else "". Not 0
 * ends the walk with -1. */
typedef int s3_xml_fn(void *ctx, const char *path, struct str text, struct error *err);
/* ERR_CORRUPT: not such a document; ERR_LIMIT: a maximum. */
int s3_xml_walk(struct str document, s3_xml_fn *fn, void *ctx, struct error *err);
/* The text of the first element at `path`, or NULL: there is none, or the document is damaged. */
const char *s3_xml_find(struct str document, const char *path, struct arena *arena);
/* text with &, <, >, " and ' as entities. */
const char *s3_xml_escape(const char *text, struct arena *arena);
