package environ_test

import (
	"fmt"

	"loki/internal/base/process/environ"
)

func ExamplePolicy_Child() {
	policy := &environ.Policy{Keys: []string{"MY_MODEL"}, Keep: []string{"CI_*"}}
	child := policy.Child([]string{"HOME=/home/me", "MY_MODEL=sk-1", "GITHUB_TOKEN=gh-1", "CI_TOKEN=ci-1", "MAIL_PASSWORD=x"}, "MAIL_PASSWORD")
	fmt.Println(child.Environ)
	fmt.Println(child.Withheld)
	// Output:
	// [HOME=/home/me CI_TOKEN=ci-1 MAIL_PASSWORD=x]
	// [GITHUB_TOKEN MY_MODEL]
}
