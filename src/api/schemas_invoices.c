/*
 * Schemas of invoices and the trial balance (api/schemas.c).
 */
#include "api/schemas.h"

const st_schema st_schemas_invoices[] = {
    {"IssuerSpec",
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLe"
     "ngth\": 200}, \"address\": {\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"arr"
     "ay\", \"items\": {\"type\": \"string\", \"maxLength\": 200}, \"minItems\": 1, \""
     "maxItems\": 6}]}, \"tax_id\": {\"type\": \"string\"}, \"email\": {\"type\": \"st"
     "ring\"}, \"series\": {\"type\": \"string\", \"description\": \"what numbers begi"
     "n with; default INV\"}, \"payment\": {\"type\": \"string\", \"description\": \"h"
     "ow to pay, printed at the end\"}, \"due_days\": {\"type\": \"integer\", \"descri"
     "ption\": \"default 30\"}}, \"required\": [\"name\", \"address\"], \"additionalPr"
     "operties\": false}"},
    {"Issuer", "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLe"
               "ngth\": 200}, \"address\": {\"type\": \"array\", \"items\": {\"type\": \"string"
               "\", \"maxLength\": 200}, \"minItems\": 1, \"maxItems\": 6}, \"tax_id\": {\"type"
               "\": \"string\"}, \"email\": {\"type\": \"string\"}, \"series\": {\"type\": \"str"
               "ing\", \"description\": \"what numbers begin with; default INV\"}, \"payment\": "
               "{\"type\": \"string\", \"description\": \"how to pay, printed at the end\"}, \"d"
               "ue_days\": {\"type\": \"integer\", \"description\": \"default 30\"}}, \"required"
               "\": [\"name\", \"address\", \"series\"], \"additionalProperties\": false}"},
    {"BillToSpec",
     "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLe"
     "ngth\": 200}, \"address\": {\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"arr"
     "ay\", \"items\": {\"type\": \"string\", \"maxLength\": 200}, \"minItems\": 1, \""
     "maxItems\": 6}]}, \"tax_id\": {\"type\": \"string\"}, \"email\": {\"type\": \"st"
     "ring\"}, \"reference\": {\"type\": \"string\", \"description\": \"the customer's"
     " own, for example an order number\"}, \"due_days\": {\"type\": \"integer\", \"de"
     "scription\": \"default: the issuer's\"}, \"taxes\": {\"type\": \"object\", \"pro"
     "perties\": {}, \"additionalProperties\": {\"type\": [\"number\", \"string\"], \""
     "description\": \"percent, with up to two decimals\"}, \"maxProperties\": 4}}, \""
     "required\": [\"name\", \"address\"], \"additionalProperties\": false}"},
    {"BillTo", "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLe"
               "ngth\": 200}, \"address\": {\"type\": \"array\", \"items\": {\"type\": \"string"
               "\", \"maxLength\": 200}, \"minItems\": 1, \"maxItems\": 6}, \"tax_id\": {\"type"
               "\": \"string\"}, \"email\": {\"type\": \"string\"}, \"reference\": {\"type\": \""
               "string\", \"description\": \"the customer's own, for example an order number\"},"
               " \"due_days\": {\"type\": \"integer\", \"description\": \"default: the issuer's"
               "\"}, \"taxes\": {\"type\": \"array\", \"items\": {\"type\": \"object\", \"proper"
               "ties\": {\"name\": {\"type\": \"string\"}, \"rate_bp\": {\"type\": \"integer\", "
               "\"description\": \"hundredths of a percent\"}}, \"required\": [\"name\", \"rate_"
               "bp\"], \"additionalProperties\": false}, \"maxItems\": 4}}, \"required\": [\"nam"
               "e\", \"address\", \"taxes\"], \"additionalProperties\": false}"},
    {"InvoiceOrder",
     "{\"type\": \"object\", \"properties\": {\"period\": {\"type\": \"string\", \"des"
     "cription\": \"a closed month: 2026-10\"}, \"account\": {\"type\": \"string\", \""
     "description\": \"only this payer; default: all that have billing details\"}}, \""
     "required\": [\"period\"], \"additionalProperties\": false}"},
    {"Invoice", "{\"type\": \"object\", \"properties\": {\"number\": {\"type\": \"string\"}, \"ki"
                "nd\": {\"type\": \"string\", \"enum\": [\"invoice\", \"credit_note\"]}, \"refers"
                "_to\": {\"type\": [\"string\", \"null\"], \"description\": \"the invoice that a "
                "credit note corrects\"}, \"account\": {\"type\": \"string\"}, \"period\": {\"typ"
                "e\": \"string\"}, \"posted\": {\"type\": \"string\", \"description\": \"the mont"
                "h whose books it is from\"}, \"from\": {\"type\": \"string\"}, \"to\": {\"type\""
                ": \"string\"}, \"issued\": {\"type\": \"string\"}, \"due\": {\"type\": \"string"
                "\"}, \"currency\": {\"type\": \"string\"}, \"issuer\": {\"$ref\": \"#/components"
                "/schemas/Issuer\"}, \"bill_to\": {\"$ref\": \"#/components/schemas/BillTo\"}, \""
                "lines\": {\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\":"
                " {\"account\": {\"type\": \"string\"}, \"for\": {\"type\": \"string\"}, \"gpu\":"
                " {\"type\": \"string\"}, \"level\": {\"type\": \"string\"}, \"quantity\": {\"typ"
                "e\": \"string\"}, \"unit\": {\"type\": \"string\"}, \"rate\": {\"type\": \"strin"
                "g\"}, \"amount_udollars\": {\"type\": \"integer\"}, \"amount\": {\"type\": \"str"
                "ing\"}}, \"required\": [\"account\", \"for\", \"gpu\", \"level\", \"quantity\", "
                "\"unit\", \"rate\", \"amount_udollars\", \"amount\"], \"additionalProperties\": "
                "false}}, \"sum_udollars\": {\"type\": \"integer\"}, \"sum\": {\"type\": \"string"
                "\"}, \"rounding_udollars\": {\"type\": \"integer\"}, \"rounding\": {\"type\": \""
                "string\"}, \"net_cents\": {\"type\": \"integer\"}, \"net\": {\"type\": \"string"
                "\"}, \"taxes\": {\"type\": \"array\", \"items\": {\"type\": \"object\", \"proper"
                "ties\": {\"name\": {\"type\": \"string\"}, \"rate_bp\": {\"type\": \"integer\"},"
                " \"rate_percent\": {\"type\": \"string\"}, \"cents\": {\"type\": \"integer\"}, "
                "\"amount\": {\"type\": \"string\"}}, \"required\": [\"name\", \"rate_bp\", \"rat"
                "e_percent\", \"cents\", \"amount\"], \"additionalProperties\": false}}, \"total_"
                "cents\": {\"type\": \"integer\"}, \"total\": {\"type\": \"string\"}, \"new\": {"
                "\"type\": \"boolean\", \"description\": \"issued by this request\"}}, \"required"
                "\": [\"number\", \"kind\", \"refers_to\", \"account\", \"period\", \"posted\", "
                "\"issued\", \"due\", \"currency\", \"issuer\", \"bill_to\", \"lines\", \"sum_udo"
                "llars\", \"sum\", \"rounding_udollars\", \"rounding\", \"net_cents\", \"net\", "
                "\"taxes\", \"total_cents\", \"total\"], \"additionalProperties\": false}"},
    {"InvoicesIssued",
     "{\"type\": \"object\", \"properties\": {\"invoices\": {\"type\": \"array\", \"it"
     "ems\": {\"$ref\": \"#/components/schemas/Invoice\"}}}, \"required\": [\"invoices"
     "\"], \"additionalProperties\": false}"},
    {"InvoiceList",
     "{\"type\": \"object\", \"properties\": {\"invoices\": {\"type\": \"array\", \"it"
     "ems\": {\"type\": \"object\", \"properties\": {\"number\": {\"type\": \"string\""
     "}, \"kind\": {\"type\": \"string\"}, \"refers_to\": {\"type\": [\"string\", \"nu"
     "ll\"]}, \"account\": {\"type\": \"string\"}, \"period\": {\"type\": \"string\"},"
     " \"issued\": {\"type\": \"string\"}, \"due\": {\"type\": \"string\"}, \"currency"
     "\": {\"type\": \"string\"}, \"total_cents\": {\"type\": \"integer\"}, \"total\":"
     " {\"type\": \"string\"}, \"credited_cents\": {\"type\": \"integer\", \"descripti"
     "on\": \"by credit notes that refer to it\"}}, \"required\": [\"number\", \"kind"
     "\", \"refers_to\", \"account\", \"period\", \"issued\", \"due\", \"currency\", "
     "\"total_cents\", \"total\", \"credited_cents\"], \"additionalProperties\": false"
     "}}}, \"required\": [\"invoices\"], \"additionalProperties\": false}"},
    {"TrialBalance",
     "{\"type\": \"object\", \"properties\": {\"period\": {\"type\": \"string\"}, \"cl"
     "osed\": {\"type\": \"boolean\"}, \"currency\": {\"type\": \"string\"}, \"rows\":"
     " {\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {\"kind"
     "\": {\"type\": \"string\", \"enum\": [\"usage\", \"invoiced\", \"receivable\", "
     "\"revenue\", \"rounding\", \"tax\"]}, \"account\": {\"type\": \"string\"}, \"deb"
     "it_udollars\": {\"type\": \"integer\"}, \"debit\": {\"type\": \"string\"}, \"cre"
     "dit_udollars\": {\"type\": \"integer\"}, \"credit\": {\"type\": \"string\"}}, \""
     "required\": [\"kind\", \"account\", \"debit_udollars\", \"debit\", \"credit_udol"
     "lars\", \"credit\"], \"additionalProperties\": false}}, \"debit_udollars\": {\"t"
     "ype\": \"integer\"}, \"debit\": {\"type\": \"string\"}, \"credit_udollars\": {\""
     "type\": \"integer\"}, \"credit\": {\"type\": \"string\"}, \"balanced\": {\"type"
     "\": \"boolean\"}}, \"required\": [\"period\", \"closed\", \"currency\", \"rows\""
     ", \"debit_udollars\", \"debit\", \"credit_udollars\", \"credit\", \"balanced\"],"
     " \"additionalProperties\": false}"},
    {0},
};
