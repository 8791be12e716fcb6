package config

import (
	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
)

const notItself = "what opens the vault cannot itself be a secret of the vault"

// vaultSecrets returns the settings that say what opens the vault and refer to a secret of it.
func (c *Config) vaultSecrets() (keys []string) {
	if file := c.VaultPasswordFile; file != nil && HasSecretPlaceholder(*file) {
		keys = append(keys, "vault_password_file")
	}
	if command := c.VaultPasswordCommand; command != nil && HasSecretPlaceholder(*command) {
		keys = append(keys, "vault_password_command")
	}
	return keys
}

// checkVault reports settings of the file that could never open the vault.
func (c *Config) checkVault(root *yamldoc.Map) {
	for _, key := range c.vaultSecrets() {
		root.Get(key).Errorf("%s", notItself)
	}
}

// checkVaultVariables does the same for the environment.
func (c *Config) checkVaultVariables() error {
	if keys := c.vaultSecrets(); len(keys) > 0 {
		return fault.New(fault.Config, "environment variable %s: %s", key{name: keys[0]}.variable(), notItself)
	}
	return nil
}
