//go:build !prebuilt

package shim

import "embed"

// released is empty: only releases bring shims.
var released embed.FS

const prebuiltFolder = "prebuilt"
