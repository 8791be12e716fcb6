// Package ragtest is the conformance suite of stores of knowledge bases: what every [rag.Store], its
// indexes and its builds have to do, beyond what their methods' signatures say.
package ragtest

import (
	"testing"

	"loki/internal/knowledge/rag"
)

// Options are what the suite needs of an implementation.
type Options struct {
	// New returns a function for handles of one store, which is empty and is removed at the end of the
	// test. The handles stand for those of different processes. Required.
	New func(t *testing.T) (handle func() rag.Store)

	// Forgets says that an interrupted build is lost.
	Forgets bool
}

// Test runs the suite.
func Test(t *testing.T, o Options) {
	for _, tt := range []struct {
		name string
		test func(s *suite)
	}{
		{"nothing", (*suite).nothing},
		{"build", (*suite).build},
		{"no_chunks", (*suite).noChunks},
		{"no_files", (*suite).noFiles},
		{"sync", (*suite).sync},
		{"sources", (*suite).sources},
		{"known_vectors", (*suite).knownVectors},
		{"other_settings", (*suite).otherSettings},
		{"configure", (*suite).configure},
		{"resume", (*suite).resume},
		{"remember", (*suite).remember},
		{"resume_with_other_settings", (*suite).resumeWithOtherSettings},
		{"one_build_at_a_time", (*suite).oneBuild},
		{"readers_are_not_disturbed", (*suite).readers},
		{"nearest", (*suite).nearest},
		{"match", (*suite).match},
		{"match_scripts", (*suite).matchScripts},
		{"wrong_vectors", (*suite).wrongVectors},
		{"odd_text", (*suite).oddText},
		{"random", (*suite).random},
		{"concurrent_searches", (*suite).concurrent},
		{"canceled", (*suite).canceled},
		{"delete", (*suite).delete},
	} {
		t.Run(tt.name, func(t *testing.T) {
			handle := o.New(t)
			tt.test(&suite{T: t, Options: o, handle: handle, store: handle()})
		})
	}
}
