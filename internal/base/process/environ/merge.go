package environ

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// Merge returns the environment base, changed by set and without the keys of unset, as
// KEY=value entries sorted by key, one per key. The later wins: an entry of base over
// the ones before it, set over base, unset over both. Entries of base without a key or
// without "=" are dropped; the keys of set must be ones that an environment can hold. On Windows keys are compared without regard to case and
// spelled as in the entry that won.
func Merge(base []string, set map[string]string, unset ...string) []string {
	return merge(base, set, unset, runtime.GOOS == "windows")
}

func merge(base []string, set map[string]string, unset []string, foldCase bool) []string {
	fold := func(key string) string { return key }
	if foldCase {
		fold = strings.ToUpper
	}
	entries := make(map[string]string, len(base)+len(set)) // by folded key
	for _, entry := range base {
		if key, ok := entryKey(entry); ok {
			entries[fold(key)] = entry
		}
	}
	// Keys of set that differ in case only would otherwise win by chance.
	for _, key := range slices.Sorted(maps.Keys(set)) {
		entries[fold(key)] = key + "=" + set[key]
	}
	for _, key := range unset {
		delete(entries, fold(key))
	}
	merged := make([]string, 0, len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		merged = append(merged, entries[key])
	}
	return merged
}

// entryKey returns the key of KEY=value. Windows keeps the working directory of each
// drive under a key that itself starts with an equals sign.
func entryKey(entry string) (key string, ok bool) {
	i := strings.IndexByte(entry[min(1, len(entry)):], '=')
	if i < 0 || entry[0] == '=' && runtime.GOOS != "windows" {
		return "", false
	}
	return entry[:i+1], true
}
