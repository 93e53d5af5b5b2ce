#include <anyperf/api.h>

#define STR_(x) #x
#define STR(x)  STR_(x)

const char *ap_version(void)
{
	return STR(AP_VERSION_MAJOR) "." STR(AP_VERSION_MINOR) "." STR(AP_VERSION_PATCH);
}
