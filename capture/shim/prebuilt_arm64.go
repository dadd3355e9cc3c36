//go:build prebuilt

package shim

import "embed"

// prebuilt holds the shims that scripts/release compiled.
//
//go:embed prebuilt/arm64
var prebuilt embed.FS

const prebuiltFolder = "prebuilt/arm64"
