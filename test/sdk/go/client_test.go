package client

import (
	_ "github.com/go-json-experiment/json"
	_ "github.com/openai/openai-go/v3"
	_ "github.com/openai/openai-go/v3/option"
)
