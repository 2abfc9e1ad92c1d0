package astronomy

import "github.com/aiopslab/aiopslab/kit"

// programs are the services by name.
var programs = map[string]kit.Program{
	"accounting": accountingMain, "ad": adMain, "cart": cartPart.main, "checkout": checkoutMain,
	"currency": currencyPart.main, "email": emailMain, "fraud-detection": fraudMain, "frontend": frontendMain,
	"frontend-proxy": proxyMain, "grafana": grafanaMain, "image-provider": imageProviderMain,
	"load-generator": loadgenMain, "llm": llmMain, "payment": paymentPart.main, "product-catalog": catalogMain,
	"product-reviews": reviewsMain, "quote": quoteMain, "recommendation": recommendationPart.main,
	"shipping": shippingMain,
}

// Image has every service as a program of that name. The tools, by name, are what it has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	i := kit.Image{
		Names:    []string{"aiopslab/astronomy-shop"},
		Tags:     `latest|v1(\.\d+)*`,
		Vars:     map[string]string{"PATH": "/app/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		WorkDir:  "/app",
		Programs: map[string]kit.Program{},
		Memory:   18 << 20,
		Size:     210 << 20,
	}
	for name, tool := range tools {
		i.Programs["/bin/"+name] = tool
	}
	for name, p := range programs {
		i.Programs["/app/bin/"+name] = p
	}
	return i
}
