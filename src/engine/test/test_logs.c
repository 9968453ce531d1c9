/* x */
#include "base/testing.h"
int main(void){return 0;}
