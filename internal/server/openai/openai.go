// Package openai serves the endpoints that clients of OpenAI know.
package openai

import (
	"loki/internal/app"
	"loki/internal/server/rest"
)

// Register adds the endpoints. core is what they work with.
func Register(a *rest.API, core *app.App) {}
