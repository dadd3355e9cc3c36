package main

// limits.c looks at the limits of the process before Go starts: Go's runtime ends with a trace of many lines where it
// gets neither memory nor files, and no Go code runs before it.

import "C"
