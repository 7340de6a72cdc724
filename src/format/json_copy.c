#include "format/json_copy.h"

void json_copy(struct json *j, const char *key, const struct json_value *value)
{
	switch (value->kind) {
	case JSON_NULL:
		json_null(j, key);
		break;
	case JSON_BOOL:
		json_bool(j, key, value->boolean);
		break;
	case JSON_NUMBER:
		if (value->is_integer)
			json_i64(j, key, value->integer);
		else
			json_real(j, key, value->number);
		break;
	case JSON_STRING:
		json_str(j, key, value->string);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		if (value->kind == JSON_ARRAY)
			json_array(j, key);
		else
			json_object(j, key);
		/* As deep as json_read allows, which is no more than the writer does. */
		for (const struct json_value *item = value->first; item; item = item->next)
			json_copy(j, value->kind == JSON_OBJECT ? item->key.data : NULL, item);
		json_end(j);
		break;
	}
}
