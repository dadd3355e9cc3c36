//go:build prebuilt

package shim

import "embed"

// released holds the shims that scripts/release compiled.
//
//go:embed prebuilt/amd64
var released embed.FS

const prebuiltFolder = "prebuilt/amd64"
