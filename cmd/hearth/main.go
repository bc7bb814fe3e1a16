// Command hearth serves open language models over the Anthropic and OpenAI APIs.
package main

import "hearth/internal/cli"

func main() { cli.Main() }
