package redact_test

import (
	"fmt"

	"loki/internal/llm/event/redact"
)

func ExampleSecrets() {
	var used redact.Secrets
	used.Add("SMTP_PASSWORD", "correct-horse-battery")
	fmt.Println(used.Text("login: correct-horse-battery, and base64: Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"))
	sealed := used.Seal("login: correct-horse-battery")
	fmt.Println(sealed)
	fmt.Println(redact.Unseal(sealed, used.Lookup))
	// Output:
	// login: ***SMTP_PASSWORD***, and base64: ***SMTP_PASSWORD***
	// login: ***SMTP_PASSWORD***
	// login: correct-horse-battery
}
