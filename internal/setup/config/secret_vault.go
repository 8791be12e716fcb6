package config

import (
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
)

const notItself = "what opens the vault cannot itself be a secret of the vault"

// vaultTexts are the settings that say what opens the vault, where they are texts.
func (c *Config) vaultTexts() Mapping {
	var texts Mapping
	for name, text := range map[string]*string{
		"vault_password_file":    c.VaultPasswordFile,
		"vault_password_command": c.VaultPasswordCommand,
	} {
		if text != nil {
			texts = append(texts, Entry{name, *text})
		}
	}
	slices.SortFunc(texts, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return texts
}

// checkVault reports settings of the file that could never open the vault.
func (c *Config) checkVault(root *yamldoc.Map) {
	for _, setting := range c.vaultTexts() {
		if HasSecretPlaceholder(setting.Value) {
			root.Get(setting.Name).Errorf("%s", notItself)
		}
	}
}

// checkVaultVariables does the same for the environment.
func (c *Config) checkVaultVariables() error {
	for _, setting := range c.vaultTexts() {
		if HasSecretPlaceholder(setting.Value) {
			return fault.New(fault.Config, "environment variable %s: %s", key{name: setting.Name}.variable(), notItself)
		}
	}
	return nil
}
