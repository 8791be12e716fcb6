// Package models holds the list of known models: what the makers of models publish
// about names, limits, prices and abilities, for clients that list no models
// themselves.
//
// A list is made of providers, each with a name and its models. The built-in list is
// models.yaml, which people edit; the program carries it as known.jsonl, one provider
// a line, and decodes a provider only when a client needs it. A user's override file
// replaces the whole list, for one version of the program; [Sync] downloads one.
//
// After a change to models.yaml run go generate in this directory.
package models

//go:generate go test -run ^TestGenerated$ . -update
