// Package hook runs the user's own commands at fixed points of the work.
//
// A [Hook] is a command with the [Kind] of the point: before and after calls of tools and models, at the beginning and
// the end of sessions, and when the user is asked. It reads an [Event], one JSON object, on its standard input, and
// may print an [Answer], another one. The answer refuses what is about to happen, changes it, or adds a note.
//
// A [Runner] runs the hooks of a kind that match, one after the other in the order of the configuration, each with what
// those before it changed. The first refusal ends that. The result is a [Decision], which callers record as part
// of their step. Refusals, changes and failures are warnings with the name of the hook and the place of its definition.
//
// docs/hooks.md describes the shapes for those who write hooks.
package hook
