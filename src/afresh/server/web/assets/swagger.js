SwaggerUIBundle({
  url: "/api/v1/openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null, tryItOutEnabled: true,
});
