"""What people see: tables, figures and a page, made of what is stored; nothing here trains."""
