//go:build !prebuilt

package shim

import "embed"

// prebuilt is empty: only releases bring shims.
var prebuilt embed.FS

const prebuiltFolder = "prebuilt"
