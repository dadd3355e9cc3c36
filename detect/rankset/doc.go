// Package rankset has sets of ranks that stay small for a million ranks (Set), bit sets (Bits), and groups of connected
// ranks (Groups, NumberedGroups).
package rankset
