package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"golang.org/x/oauth2"

	"loki/internal/base/file/vault"
	"loki/internal/base/process/environ"
	"loki/internal/llm/event/redact"
	"loki/internal/setup/config"
	"loki/internal/tool/mcp"
	"loki/internal/tool/mcp/oauth"
)

// Vault returns the vault, which is opened when a secret is asked for: once, as that
// takes time.
func (a *App) Vault() *vault.Vault {
	a.secretMu.Lock()
	defer a.secretMu.Unlock()
	if a.vault == nil {
		a.vault = a.newVault()
	}
	return a.vault
}

// lookupSecret gets a secret for a setting that refers to it. From then on it is kept out of
// what is shown and stored.
func (a *App) lookupSecret(name string) (string, error) {
	text, err := a.Vault().Get(context.Background(), name)
	if err == nil {
		a.used.Add(name, text)
	}
	return text, err
}

// Hide returns a text for people without the secrets that have been used.
func (a *App) Hide(text string) string { return a.used.Text(text) }

// sealedSecret returns the secret that a mark in the record of a run stands for.
func (a *App) sealedSecret(marked string) (string, bool) {
	if text, ok := a.used.Lookup(marked); ok {
		return text, true
	}
	if text := a.Setting(marked); text != "" && environ.Secret(marked, text) {
		return text, true
	}
	if _, err := a.MCP.ServerFile(); err == nil { // the secrets in mcp.json are known now
		if text, ok := a.used.Lookup(marked); ok {
			return text, true
		}
	}
	names, err := a.Vault().List(context.Background())
	if err != nil {
		return "", false
	}
	for _, name := range names {
		if redact.SameName(name, marked) {
			text, err := a.lookupSecret(name)
			if err != nil {
				a.Notices.Later(fmt.Sprintf("the record of the run has the secret %s, which the vault does not give: %v", name, err))
			}
			return text, err == nil
		}
	}
	return "", false
}

// keepTokens returns what makes the OAuth tokens of a client or a server known, so that they
// are kept out of what is shown and stored.
func (a *App) keepTokens(name string) func(*oauth2.Token) {
	prefix := config.AgentVariable(name)
	return func(t *oauth2.Token) {
		a.used.Add(prefix+"_OAUTH_TOKEN", t.AccessToken)
		a.used.Add(prefix+"_OAUTH_REFRESH_TOKEN", t.RefreshToken)
	}
}

func (a *App) newVault() *vault.Vault {
	cfg := a.Config
	return vault.New(vault.Options{
		File:       a.Paths.VaultFile,
		LegacyFile: a.Paths.LegacyVault(a.Env),
		Password: vault.Password{
			File: a.VaultPasswordFile(), DefaultFile: a.Paths.VaultPasswordFile,
			Command: *cmp.Or(cfg.VaultPasswordCommand, new("")), Env: a.Apart(a.Env.Environ()), Dir: a.OwnDir, UseKeychain: cfg.VaultKeychain,
		},
		Warn: a.Notices.Later,
	})
}

// Authenticate logs in to the client called name, or to the MCP server called mcp:NAME,
// and keeps the token.
func (a *App) Authenticate(ctx context.Context, name string, user oauth.User) error {
	if server, ok := strings.CutPrefix(name, mcp.LoginPrefix); ok {
		return a.MCP.Login(ctx, server, user)
	}
	return a.Models.Login(ctx, name, user)
}

// Seal returns a text, JSON or not, as it may be stored outside of this process: with marks in place of the secrets that
// have been used, as records of runs have them.
func (a *App) Seal(text string) string { return a.used.Seal(text) }

// Unseal returns a text that Seal returned, in this process or another one, with the secrets that this process can get.
func (a *App) Unseal(text string) string { return redact.Unseal(text, a.sealedSecret) }

// DisplaySealed returns a text that Seal returned as people read it: marks stay.
func (a *App) DisplaySealed(text string) string { return redact.Unseal(text, nil) }
