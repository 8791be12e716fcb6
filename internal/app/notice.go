package app

import (
	"fmt"
	"path/filepath"

	"loki/internal/llm/catalog/models"
)

// NoteConfig adds to the notices what the user has to know of the configuration once, and
// puts an outdated list of models aside.
func (a *App) NoteConfig() {
	for _, note := range a.Config.Notes {
		a.Notices.Once(note, note, a.Notices.Later)
	}
	if a.outdatedModels == "" {
		return
	}
	file := a.Paths.ModelsOverrideFile
	text := fmt.Sprintf("%s is a list of models for version %s, and this is version %s: the built-in list is used", file, a.outdatedModels, Version)
	if renamed, err := models.PutAside(file, a.outdatedModels); err == nil {
		a.Notices.Later(text + ", and the file is " + filepath.Base(renamed) + " now; loki --sync-models fetches a new list")
		return
	}
	a.Notices.Once(text, text, a.Notices.Later)
}
